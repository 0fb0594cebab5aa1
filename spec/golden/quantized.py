# quantized.py: writes quantized.keras, a model after Keras' quantize("int8"), quantized.weights.h5, its weights, unquantized.keras, the
# same before that, and quantized.json, what both predict. quantized_lora.keras has LoRA, too: what it predicts, and how it trains, is in
# quantized.json. Run: python spec/golden/quantized.py
import json
import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import numpy as np

import keras

folder = os.path.dirname(os.path.abspath(__file__))
layers = keras.layers


def model():
    ids = keras.Input((5,), dtype="int32")
    h = layers.Embedding(10, 6)(ids)
    h = layers.EinsumDense("abc,dce->abed", output_shape=(None, 2, 3), bias_axes="ed")(h)
    h = layers.EinsumDense("abed,def->abf", output_shape=(None, 6), activation="relu")(h)
    h = h + layers.MultiHeadAttention(2, 3, use_gate=True)(h, h)
    h = layers.GroupQueryAttention(2, 4, 2)(h, h)
    return keras.Model(ids, layers.Dense(4, activation="tanh")(h))


# The weights of before are numbers(i, shape); "ql": it is quantized first, "lq": it has LoRA first.
def with_lora(order):
    ids = keras.Input((5,), dtype="int32")
    h = layers.Embedding(10, 6)(ids)
    h = layers.EinsumDense("abc,cd->abd", output_shape=(None, 4), bias_axes="d", activation="relu")(h)
    h = layers.Dense(4)(h)
    table = layers.ReversibleEmbedding(7, 4, tie_weights=False)
    h = h + layers.GlobalAveragePooling1D(keepdims=True)(table(ids % 7))
    h = layers.Dense(4, activation="tanh")(h)
    # Keras differentiates what goes back by the largest of each row alone, which is no gradient: it stays out of training.
    made = keras.Model(ids, [h, table(keras.ops.stop_gradient(h), reverse=True)])
    weights = [w for layer in made.layers for w in layer.weights]
    for i, w in enumerate(weights):
        w.assign(numbers(i, w.shape))
    changed = [layer for layer in made.layers if isinstance(layer, (layers.Embedding, layers.EinsumDense, layers.Dense))][:4]

    def lora():
        for i, layer in enumerate(changed):
            layer.enable_lora(2, lora_alpha=3)
            a, b = layer.trainable_variables[-2:]
            a.assign(numbers(40 + i, a.shape))
            b.assign(numbers(50 + i, b.shape))

    if order == "lq":
        lora()
    made.quantize("int8")
    if order == "ql":
        lora()
    return made


def numbers(seed, shape):
    count = int(np.prod(shape))
    return (((np.arange(count) + seed) * 37 % 101) / 101 - 0.5).reshape(shape).astype("float32")


def flat(x):
    return [round(float(v), 7) for v in np.asarray(x).reshape(-1)]


def both(outputs):
    return [v for y in outputs for v in flat(y)]


made, ids = model(), np.arange(10).reshape(2, 5).astype("int32")
for i, w in enumerate(made.weights):
    w.assign(np.random.RandomState(i).uniform(-1, 1, w.shape).astype("float32"))
floats = made.predict(ids, verbose=0)
made.save(os.path.join(folder, "unquantized.keras"))
made.quantize("int8")
made.save(os.path.join(folder, "quantized.keras"))
made.save_weights(os.path.join(folder, "quantized.weights.h5"))
lora = {}
for order in ("lq", "ql"):
    one = with_lora(order)
    one.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse")
    before = one.predict(ids, verbose=0)
    one.fit(ids, [np.ones(y.shape) for y in before], epochs=3, verbose=0, shuffle=False)
    lora[order] = {"before": both(before), "after": both(one.predict(ids, verbose=0)),
                   "trainable": [v.path.split("/", 1)[-1] for v in one.trainable_variables]}
    one.save(os.path.join(folder, "quantized_lora.keras"))
    again = keras.models.load_model(os.path.join(folder, "quantized_lora.keras"))
    lora[order]["again"] = both(again.predict(ids, verbose=0))
with open(os.path.join(folder, "quantized.json"), "w") as file:
    json.dump({"keras": keras.__version__, "floats": flat(floats), "int8": flat(made.predict(ids, verbose=0)),
               "lora": lora}, file)
    file.write("\n")
