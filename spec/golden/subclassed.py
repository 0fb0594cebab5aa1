"""subclassed.py: weights of subclassed models as Keras writes them, which spec/golden/subclassed_spec.lua reads.

    python spec/golden/subclassed.py      writes spec/golden/keras/subclassed*.weights.h5 and spec/golden/subclassed.lua

A field whose name comes after "layers" in the alphabet is stored in the list of layers: the first of its places that Keras meets.
"""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"
import keras
import numpy as np
from keras import layers

HERE = os.path.dirname(os.path.abspath(__file__))


class Mixer(layers.Layer):
    def __init__(self, units):
        super().__init__()
        self.norm = layers.LayerNormalization()
        self.dense = layers.Dense(units)

    def call(self, x):
        return x + self.dense(self.norm(x))


class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.stem = layers.Dense(4)
        self.blocks = [Mixer(4), Mixer(4)]
        self.mixers = [Mixer(4)]
        self.head = keras.Sequential([layers.Dense(3), layers.BatchNormalization()])
        self._private = layers.Dense(2)

    def call(self, x):
        x = self.stem(x)
        for block in self.blocks + self.mixers:
            x = block(x)
        return self._private(self.head(x))


class Pair(keras.Model):
    def __init__(self):
        super().__init__()
        self.first = layers.Dense(4)
        self.second = layers.Dense(2)

    def call(self, x):
        return self.second(self.first(x))


def scramble(model, seed):
    random = np.random.default_rng(seed)
    for v in model.weights:
        v.assign(random.uniform(0.2, 0.9, v.shape))


def text(values):
    return "{ " + ", ".join("{ " + ", ".join(f"{v:.7g}" for v in row) + " }" for row in values) + " }"


def main():
    x = np.arange(6, dtype="float32").reshape(2, 3) / 5
    lines = ["-- subclassed.lua: inputs, and what models with the weights of spec/golden/keras/subclassed*.weights.h5 predict. Made by",
             "-- subclassed.py.", "return {", f"  x = {text(x)},"]
    graph = keras.Sequential([layers.Input((3,)), layers.Dense(4), layers.Dense(2)])
    pair = Pair()
    pair(x)
    for name, model in (("net", Net()), ("graph", graph)):
        model(x)
        scramble(model, 1)
        path = os.path.join(HERE, "keras", f"subclassed_{name}.weights.h5")
        model.save_weights(path)
        if name == "graph":
            pair.load_weights(path)
            model = pair
        lines.append(f"  {name} = {text(model(x, training=False).numpy())},")
    with open(os.path.join(HERE, "subclassed.lua"), "w") as file:
        file.write("\n".join(lines + ["}", ""]))


main()
