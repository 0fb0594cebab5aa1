"""Golden cases of float64_spec.lua: what models of layers with dtype = "float64" train and predict, under each optimizer.

    /tmp/keras/bin/python spec/golden/float64.py

writes float64.lua: inputs and weights by the formula of generate.py, the losses of six steps, the weights after them, and predictions.
floatx is float64, for Keras' losses to be of that dtype, too. Numbers are such as float32 has: Keras casts some of them by way of it."""
from generate import Seeds, keras, make, np, write_entries

O, L = keras.optimizers, keras.layers
FAST, SLOW = {"learning_rate": 0.125}, {"learning_rate": 0.015625}
OPTIMIZERS = [
    ("SGD", FAST), ("SGD", FAST | {"momentum": 0.875, "nesterov": True, "clipnorm": 0.5}),
    ("SGD", FAST | {"momentum": 0.5, "gradient_accumulation_steps": 2}),
    ("Adam", SLOW | {"global_clipnorm": 0.3}), ("Adam", SLOW | {"amsgrad": True, "weight_decay": 0.1}),
    ("Adam", SLOW | {"use_ema": True, "ema_overwrite_frequency": 2}), ("AdamW", SLOW),
    ("RMSprop", SLOW | {"centered": True, "momentum": 0.5}), ("Adagrad", FAST | {"initial_accumulator_value": 0.125}),
    ("Adadelta", {"learning_rate": 1.0}), ("Adamax", SLOW), ("Nadam", SLOW | {"beta_1": 0.875, "beta_2": 0.96875}),
    ("Ftrl", FAST | {"initial_accumulator_value": 0.125}), ("Lion", SLOW), ("Lamb", SLOW),
    ("Adafactor", SLOW | {"beta_2_decay": -0.75, "epsilon_2": 0.0009765625}),
    ("Muon", SLOW | {"adam_beta_1": 0.875, "adam_beta_2": 0.96875, "muon_a": 3.4375, "muon_b": -4.75, "muon_c": 2.03125,
                     "momentum": 0.9375, "adam_weight_decay": 0.0, "rms_rate": 0.25}),
]


def numbers(array):
    return [float("%.10g" % number) for number in np.asarray(array, dtype=np.float64).reshape(-1)]


def entry(seeds, name, options):
    keras.backend.clear_session()
    model = keras.Sequential([keras.Input((6,)), L.Dense(5, activation="tanh"), L.BatchNormalization(), L.Dense(3)])
    x, y = seeds.uniform([16, 6]), seeds.uniform([16, 3])
    weights = [seeds.weight(variable) for variable in model.weights]
    model.set_weights([make(weight).astype(np.float64) for weight in weights])
    model.compile(optimizer=getattr(O, name)(**options), loss="mse")
    inputs, targets = make(x).astype(np.float64), make(y).astype(np.float64)
    losses = [model.train_on_batch(inputs, targets) for _ in range(6)]
    return {"optimizer": name, "options": options, "x": x, "y": y, "weights": weights, "losses": numbers(losses),
            "trained": [numbers(weight) for weight in model.get_weights()], "predictions": numbers(model.predict(inputs, verbose=0))}


if __name__ == "__main__":
    keras.config.set_floatx("float64")
    seeds = Seeds(97600)
    write_entries("float64", [entry(seeds, name, options) for name, options in OPTIMIZERS])
