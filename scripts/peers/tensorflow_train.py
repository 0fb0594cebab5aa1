"""tensorflow_train.py NET SECONDS THREADS: TensorFlow's side of compare.py, which describes the conversation."""
import os
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"
import keras
import numpy as np
import tensorflow as tf
from keras import layers

net, seconds, threads = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
tf.config.threading.set_intra_op_parallelism_threads(threads)
random = np.random.default_rng(1)


def flowers():
    model = [layers.Input((180, 180, 3)), layers.Rescaling(1 / 255)]
    for filters in (16, 32, 64):
        model += [layers.Conv2D(filters, 3, padding="same", activation="relu"), layers.MaxPooling2D()]
    model = keras.Sequential(model + [layers.Flatten(), layers.Dense(128, activation="relu"), layers.Dense(5, activation="softmax")])
    model.compile(optimizer=keras.optimizers.Adam(), loss=keras.losses.SparseCategoricalCrossentropy(), metrics=["accuracy"])
    batch, batches = 32, 20
    return model, random.uniform(0, 255, (batch * batches, 180, 180, 3)).astype("float32"), random.integers(0, 5, batch * batches), batch


def mnist():
    model = keras.Sequential([layers.Input((28, 28)), layers.Reshape((28, 28, 1)), layers.Conv2D(32, 3, activation="relu"),
                              layers.Flatten(), layers.Dense(128, activation="relu"), layers.Dense(10)])
    model.compile(optimizer=keras.optimizers.SGD(0.001), loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  metrics=["accuracy"])
    batch, batches = 64, 200
    return model, random.random((batch * batches, 28, 28), dtype="float32"), random.integers(0, 10, batch * batches), batch


model, x, y, batch = {"flowers": flowers, "mnist": mnist}[net]()
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(batch).cache().prefetch(2)


def train(epochs):
    start = time.perf_counter()
    model.fit(data, epochs=epochs, shuffle=False, verbose=0)
    return time.perf_counter() - start


train(1)                                         # traces and fills the cache
epochs = max(1, round(seconds / train(1)))
print("ready", flush=True)
for _ in sys.stdin:
    took = train(epochs)
    print("window %d %.6f" % (epochs * len(x), took), flush=True)
