"""item_keys.py: a model of parts of its input as Keras writes it, and what Keras computes, for item_keys_spec.lua.

    python3 -m venv /tmp/keras && /tmp/keras/bin/pip install tensorflow-cpu
    /tmp/keras/bin/python spec/golden/item_keys.py      writes item_keys.keras and item_keys.npz
"""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
PARTS = [
    lambda x: x[:, ::-1], lambda x: x[:, :, ::-2], lambda x: x[:, 3:0:-1], lambda x: x[:, 100::-1], lambda x: x[:, 10:1:-1, -2],
    lambda x: x[:, 1:, 4:0:-3], lambda x: x[:, 1:3:-1], lambda x: x[:, :100], lambda x: x[:, 100:], lambda x: x[:, 7:9],
    lambda x: x[:, -100:2], lambda x: x[:, 3:1], lambda x: x[..., 0], lambda x: x[..., 1:3], lambda x: x[:, ..., ::-1],
]

x = keras.Input((4, 5))
model = keras.Model(x, [part(x) for part in PARTS])
model.save(os.path.join(HERE, "item_keys.keras"))
values = np.arange(60, dtype="float32").reshape(3, 4, 5)
np.savez_compressed(os.path.join(HERE, "item_keys.npz"), x=values,
                    **{"y%d" % (i + 1): np.asarray(y) for i, y in enumerate(model(values))})
