# stft.py: writes stft.json: what Keras' initializers.STFT gives, and TensorFlow's weights of mel bands. Run: python spec/golden/stft.py
import json
import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import numpy as np

import keras
import tensorflow as tf

CASES = [
    (dict(), (6, 1, 5)),
    (dict(side="imag", window="hamming", scaling="spectrum", periodic=True), (5, 1, 4)),
    (dict(side="imag", window=None), (4, 1, 3)),
    (dict(window=[0.5, 1.0, 2.0, 1.0], scaling=None), (4, 1, 3)),
    (dict(window="blackman", periodic=True), (8, 1, 5)),
]


BANDS = [(4, 6, 8000, 125.0, 3800.0), (3, 5, 16000, 80.0, 7600.0), (20, 129, 8000, 0.0, 4000.0)]


def run(arguments, shape):
    made = keras.initializers.STFT(**arguments)
    values = [round(float(v), 6) for v in np.asarray(made(shape)).reshape(-1)]
    return {"shape": shape, "values": values, "serialized": keras.saving.serialize_keras_object(made)}


def bands(arguments):
    made = tf.signal.linear_to_mel_weight_matrix(*arguments, dtype=tf.float64)
    return {"arguments": arguments, "values": [round(float(v), 6) for v in made.numpy().reshape(-1)]}


with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "stft.json"), "w") as file:
    cases = {"cases": [run(*case) for case in CASES], "bands": [bands(case) for case in BANDS]}
    json.dump({"keras": keras.__version__, **cases}, file, separators=(",", ":"))
    file.write("\n")
