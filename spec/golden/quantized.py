# quantized.py: writes quantized.keras, a model after Keras' quantize("int8"), unquantized.keras, the same before that, and quantized.json,
# what both predict. Run: python spec/golden/quantized.py
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


def flat(x):
    return [round(float(v), 7) for v in np.asarray(x).reshape(-1)]


made, ids = model(), np.arange(10).reshape(2, 5).astype("int32")
for i, w in enumerate(made.weights):
    w.assign(np.random.RandomState(i).uniform(-1, 1, w.shape).astype("float32"))
floats = made.predict(ids, verbose=0)
made.save(os.path.join(folder, "unquantized.keras"))
made.quantize("int8")
made.save(os.path.join(folder, "quantized.keras"))
with open(os.path.join(folder, "quantized.json"), "w") as file:
    json.dump({"keras": keras.__version__, "floats": flat(floats), "int8": flat(made.predict(ids, verbose=0))}, file)
    file.write("\n")
