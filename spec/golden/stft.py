# stft.py: writes stft.json: what Keras' initializers.STFT gives. Run: python spec/golden/stft.py
import json
import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import numpy as np

import keras

CASES = [
    (dict(), (6, 1, 5)),
    (dict(side="imag", window="hamming", scaling="spectrum", periodic=True), (5, 1, 4)),
    (dict(side="imag", window=None), (4, 1, 3)),
    (dict(window=[0.5, 1.0, 2.0, 1.0], scaling=None), (4, 1, 3)),
    (dict(window="blackman", periodic=True), (8, 1, 5)),
]


def run(arguments, shape):
    made = keras.initializers.STFT(**arguments)
    values = [round(float(v), 6) for v in np.asarray(made(shape)).reshape(-1)]
    return {"shape": shape, "values": values, "serialized": keras.saving.serialize_keras_object(made)}


with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "stft.json"), "w") as file:
    json.dump({"keras": keras.__version__, "cases": [run(*case) for case in CASES]}, file, separators=(",", ":"))
    file.write("\n")
