"""Golden files of feature_space_spec.lua: a FeatureSpace that Keras has saved, and what it makes of some rows.

    /tmp/keras/bin/python spec/golden/feature_space.py             writes feature_space.keras and feature_space.lua
    /tmp/keras/bin/python spec/golden/feature_space.py FILE        prints what Keras makes of the rows with a space in a file"""
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"
import keras
import numpy as np
import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))
ROWS = {"town": ["bern", "rome", "oslo", "rome"], "job": ["cook", "smith", "cook", "clerk"], "wage": [1.0, 2.0, 3.0, 10.0],
        "age": [21.0, 35.0, 48.0, 62.0], "rooms": [3, 4, 3, 9], "height": [1.5, 1.75, 1.625, 1.875], "plain": [4.0, 3.0, 2.0, 1.0],
        "street": ["a", "b", "c", "d"], "bin": [0.5, 1.5, 2.5, 3.5]}


def values_of(space):
    rows = next(iter(tf.data.Dataset.from_tensor_slices(ROWS).batch(4)))
    return [[round(float(v), 5) for v in row] for row in np.asarray(space(rows))]


if len(sys.argv) > 1:
    print(values_of(keras.models.load_model(sys.argv[1])))
    sys.exit()

Space = keras.utils.FeatureSpace
space = Space(  # two of a class, whose names are not in the order of the alphabet
    features={"town": "string_categorical", "job": Space.string_categorical(max_tokens=3), "wage": "float_normalized",
              "age": "float_normalized", "rooms": "integer_categorical", "height": Space.float_rescaled(2.0, -1.0), "plain": "float",
              "street": Space.string_hashed(5), "bin": Space.float_discretized(3)},
    crosses=[("town", "job"), Space.cross(("street", "rooms"), 4)], crossing_dim=6)
space.adapt(tf.data.Dataset.from_tensor_slices(ROWS).batch(2))
space.save(os.path.join(HERE, "feature_space.keras"))
lines = ["-- Made by feature_space.py.", "return {"]
for row in values_of(space):
    texts = [repr(v) for v in row]
    lines += ["  {"] + ["    " + ", ".join(texts[i:i + 16]) + "," for i in range(0, len(texts), 16)] + ["  },"]
with open(os.path.join(HERE, "feature_space.lua"), "w") as file:
    file.write("\n".join(lines + ["}", ""]))
