"""tensorflow_peer.py NET MODE SECONDS THREADS: TensorFlow's side of compare.py, which describes the conversation."""
import os
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"
import keras
import numpy as np
import tensorflow as tf
from keras import layers

net, mode, seconds, threads = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
tf.config.threading.set_intra_op_parallelism_threads(threads)
random = np.random.default_rng(1)


def compiled(model, optimizer, from_logits=True):
    model.compile(optimizer=optimizer, loss=keras.losses.SparseCategoricalCrossentropy(from_logits=from_logits), metrics=["accuracy"])
    return model


def flowers():
    model = [layers.Input((180, 180, 3)), layers.Rescaling(1 / 255)]
    for filters in (16, 32, 64):
        model += [layers.Conv2D(filters, 3, padding="same", activation="relu"), layers.MaxPooling2D()]
    model = keras.Sequential(model + [layers.Flatten(), layers.Dense(128, activation="relu"), layers.Dense(5, activation="softmax")])
    return compiled(model, keras.optimizers.Adam(), from_logits=False), (180, 180, 3), 5, 32


def mnist():
    model = keras.Sequential([layers.Input((28, 28)), layers.Reshape((28, 28, 1)), layers.Conv2D(32, 3, activation="relu"),
                              layers.Flatten(), layers.Dense(128, activation="relu"), layers.Dense(10)])
    return compiled(model, keras.optimizers.SGD(0.001)), (28, 28), 10, 64


def normalized(x, layer):
    return layers.BatchNormalization()(layer(x))


def resnet20():
    def conv(x, filters, size, strides=1):
        return normalized(x, layers.Conv2D(filters, size, strides=strides, padding="same", use_bias=False))

    image = keras.Input((32, 32, 3))
    x = layers.ReLU()(conv(image, 16, 3))
    for stage, filters in enumerate((16, 32, 64)):
        for block in range(3):
            strides = 2 if stage > 0 and block == 0 else 1
            y = conv(layers.ReLU()(conv(x, filters, 3, strides)), filters, 3)
            x = layers.ReLU()(layers.Add()([conv(x, filters, 1, strides) if strides > 1 else x, y]))
    model = keras.Model(image, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))
    return compiled(model, keras.optimizers.SGD(0.1, momentum=0.9)), (32, 32, 3), 10, 64


def mobilenet():
    image = keras.Input((96, 96, 3))
    x = layers.ReLU()(normalized(image, layers.Conv2D(8, 3, strides=2, padding="same", use_bias=False)))
    for filters, strides in [(16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2)] + 5 * [(128, 1)] + [(256, 2), (256, 1)]:
        x = layers.ReLU()(normalized(x, layers.DepthwiseConv2D(3, strides=strides, padding="same", use_bias=False)))
        x = layers.ReLU()(normalized(x, layers.Conv2D(filters, 1, use_bias=False)))
    model = keras.Model(image, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))
    return compiled(model, keras.optimizers.Adam()), (96, 96, 3), 10, 32


model, shape, classes, batch = {"flowers": flowers, "mnist": mnist, "resnet20": resnet20, "mobilenet": mobilenet}[net]()
rows = batch * (200 if net == "mnist" else 20)
x = random.random((rows,) + shape, dtype="float32") * (255 if net == "flowers" else 1)
y = random.integers(0, classes, rows)

if mode == "train":
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(batch).cache().prefetch(2)

    def work(passes):
        model.fit(data, epochs=passes, shuffle=False, verbose=0)
else:
    # Faster than model.predict: a compiled call of the model for each batch, which is there as a tensor.
    batches = [tf.constant(x[first:first + 32]) for first in range(0, rows, 32)]
    predict = tf.function(lambda images: model(images, training=False))

    def work(passes):
        for _ in range(passes):
            tf.concat([predict(images) for images in batches], 0).numpy()


def run(passes):
    start = time.perf_counter()
    work(passes)
    return time.perf_counter() - start


run(1)                                           # traces and fills the cache
passes = max(1, round(seconds / run(1)))
print("ready", flush=True)
for _ in sys.stdin:
    print("window %d %.6f" % (passes * rows, run(passes)), flush=True)
