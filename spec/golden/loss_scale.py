"""Keras' LossScaleOptimizer, step by step: writes loss_scale.lua, and keras/scaled.keras and scaled.weights.h5, a model under
mixed_float16 after some steps; loss_scale_inner.lua, and keras/scaled_nadam.keras and scaled_adafactor.keras. Run with
Keras and TensorFlow installed:
    python spec/golden/loss_scale.py
Inputs and weights follow the formula of generate.py. The cases in float16 begin with a scale at which
gradients overflow, and all double it often."""
import os

import keras

from generate import Seeds, make, write_entries

HERE = os.path.dirname(os.path.abspath(__file__))
FEATURES, UNITS, CLASSES, BATCH, STEPS, SAVED_AFTER = 6, 8, 3, 16, 16, 9
CASES = {
    "momentum": ("mixed_float16", 2.0 ** 24, 3, lambda: keras.optimizers.SGD(0.1, momentum=0.9)),
    "adam": ("mixed_float16", 2.0 ** 22, 2, lambda: keras.optimizers.Adam(0.02, global_clipnorm=0.5)),
    "clipnorm": ("mixed_float16", 2.0 ** 22, 2, lambda: keras.optimizers.RMSprop(0.01, clipnorm=0.05)),
    "decay": ("mixed_float16", 2.0 ** 23, 4, lambda: keras.optimizers.AdamW(
        keras.optimizers.schedules.ExponentialDecay(0.05, 3, 0.5), weight_decay=0.1, clipvalue=0.02)),
    "float32": ("float32", 2.0 ** 118, 2, lambda: keras.optimizers.Adam(0.02, amsgrad=True)),
}


def net(weights):
    model = keras.Sequential([keras.layers.Input((FEATURES,)), keras.layers.Dense(UNITS, activation="tanh"),
                              keras.layers.Dense(CLASSES, dtype="float32")])
    model.set_weights([make(tensor) for tensor in weights])
    return model


def number(variable):
    return float(keras.ops.convert_to_numpy(variable))


def train(policy, scale, growth, optimizer, weights, x, y, path=None):
    keras.backend.clear_session()
    keras.mixed_precision.set_global_policy(policy)
    model = net(weights)
    scaled = keras.optimizers.LossScaleOptimizer(optimizer(), initial_scale=scale, dynamic_growth_steps=growth)
    model.compile(optimizer=scaled, loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
    losses, scales, counters, iterations = [], [], [], []
    for step in range(STEPS):
        losses.append(float("%.7g" % float(model.train_on_batch(make(x), make(y)))))
        scales.append(number(scaled.dynamic_scale))
        counters.append(int(number(scaled.step_counter)))
        iterations.append(int(number(scaled.iterations)))
        if path and step + 1 == SAVED_AFTER:
            model.save(path)
            model.save_weights(path.replace(".keras", ".weights.h5"))
    return {"losses": losses, "scales": scales, "counters": counters, "iterations": iterations}


def save_inner(name, optimizer, weights, x, y):
    """keras/scaled_NAME.keras, after three steps, and the losses with which Keras goes on from that file. Its optimizer has state that
    Keras does not write where it is inside a loss scale."""
    keras.backend.clear_session()
    keras.mixed_precision.set_global_policy("float32")
    model = net(weights)
    model.compile(optimizer=keras.optimizers.LossScaleOptimizer(optimizer, initial_scale=64.0, dynamic_growth_steps=2),
                  loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
    for _ in range(3):
        model.train_on_batch(make(x), make(y))
    path = os.path.join(HERE, "keras", f"scaled_{name}.keras")
    model.save(path)
    read = keras.saving.load_model(path)
    return {"inner": name, "x": x, "y": y, "losses": [float("%.7g" % float(read.train_on_batch(make(x), make(y)))) for _ in range(4)]}


def main():
    seeds, entries = Seeds(314), []
    seeds.last = 8000
    weights = [seeds.uniform([FEATURES, UNITS]), seeds.uniform([UNITS], -0.1, 0.1), seeds.uniform([UNITS, CLASSES]),
               seeds.uniform([CLASSES], -0.1, 0.1)]
    x, y = seeds.uniform([BATCH, FEATURES]), seeds.labels([BATCH], CLASSES)
    for name, (policy, scale, growth, optimizer) in CASES.items():
        path = os.path.join(HERE, "keras", "scaled.keras") if name == "adam" else None
        steps = train(policy, scale, growth, optimizer, weights, x, y, path)
        print(name, steps)
        entries.append({"name": name, "policy": policy, "initial_scale": scale, "growth": growth, "saved_after": SAVED_AFTER, "x": x,
                        "y": y, "weights": weights, **steps})
    write_entries("loss_scale", entries)
    inner = {"nadam": keras.optimizers.Nadam(0.02), "adafactor": keras.optimizers.Adafactor(0.05)}
    write_entries("loss_scale_inner", [save_inner(name, optimizer, weights, x, y) for name, optimizer in inner.items()], "loss_scale")


if __name__ == "__main__":
    main()
