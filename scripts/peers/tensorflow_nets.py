"""tensorflow_nets.py: the nets of compare.py in Keras. A function returns a compiled model, the shape of an image (or row), the number of
classes, or None where an image is to be reproduced, and the batch size for training."""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"
import keras
import numpy as np
from keras import layers

from conversation import PIXELS, TEXTS


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


def resnet50():
    def conv(x, filters, size, strides=1):
        return normalized(x, layers.Conv2D(filters, size, strides=strides, padding="same", use_bias=False))

    image = keras.Input((224, 224, 3))
    x = layers.MaxPooling2D(3, strides=2, padding="same")(layers.ReLU()(conv(image, 64, 7, 2)))
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            filters, strides = 64 << stage, 2 if stage > 0 and block == 0 else 1
            y = layers.ReLU()(conv(layers.ReLU()(conv(x, filters, 1)), filters, 3, strides))
            x = layers.ReLU()(layers.Add()([conv(x, 4 * filters, 1, strides) if block == 0 else x, conv(y, 4 * filters, 1)]))
    model = keras.Model(image, layers.Dense(1000)(layers.GlobalAveragePooling2D()(x)))
    return compiled(model, keras.optimizers.SGD(0.1, momentum=0.9)), (224, 224, 3), 1000, 8


def vgg11():
    model = [layers.Input((112, 112, 3))]
    for stage in ((64,), (128,), (256, 256), (512, 512), (512, 512)):
        model += [layers.Conv2D(filters, 3, padding="same", activation="relu") for filters in stage] + [layers.MaxPooling2D()]
    model = keras.Sequential(model + [layers.Flatten(), layers.Dense(1000)])
    return compiled(model, keras.optimizers.SGD(0.001)), (112, 112, 3), 1000, 16


def unet():
    def twice(x, filters):
        for _ in range(2):
            x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
        return x

    image = keras.Input((48, 48, 3))
    x, skipped = layers.Rescaling(1 / 255)(image), []
    for filters in (16, 32):
        skipped.append(twice(x, filters))
        x = layers.MaxPooling2D()(skipped[-1])
    x = twice(x, 64)
    for filters in (32, 16):
        x = twice(layers.Concatenate()([skipped.pop(), layers.UpSampling2D()(x)]), filters)
    model = keras.Model(image, layers.Dense(4)(layers.GlobalAveragePooling2D()(layers.Conv2D(8, 1)(x))))
    return compiled(model, keras.optimizers.Adam()), (48, 48, 3), 4, 8


def mlp():
    model = keras.Sequential([layers.Input((784,)), layers.Dense(512, activation="relu"), layers.Dropout(0.2),
                              layers.Dense(256, activation="relu"), layers.Dense(10)])
    return compiled(model, keras.optimizers.Adam()), (784,), 10, 128


def text_classifier(length, batch, stack):
    """The embedded words of a text, a stack of layers, two classes."""
    words = keras.Input((length,), dtype="int32")
    model = keras.Model(words, layers.Dense(2)(stack(layers.Embedding(20000, 128)(words))))
    return compiled(model, keras.optimizers.Adam()), (length,), 2, batch


def embedding():
    return text_classifier(200, 64, lambda x: layers.Dense(64, activation="relu")(layers.GlobalAveragePooling1D()(x)))


def lstm():
    return text_classifier(150, 32, layers.LSTM(128))


def gru():
    return text_classifier(150, 32, layers.GRU(128))


def transformer():
    class Positions(layers.Layer):
        def __init__(self):
            super().__init__()
            self.table = layers.Embedding(128, 128)

        def call(self, x):
            return x + self.table(keras.ops.arange(128))

    def stack(x):
        x = Positions()(x)
        for _ in range(2):
            attended = layers.MultiHeadAttention(4, 32)(x, x)
            x = layers.LayerNormalization(epsilon=1e-6)(x + layers.Dropout(0.1)(attended))
            y = layers.Dense(128)(layers.Dense(512, activation="relu")(x))
            x = layers.LayerNormalization(epsilon=1e-6)(x + layers.Dropout(0.1)(y))
        return layers.GlobalAveragePooling1D()(x)

    return text_classifier(128, 32, stack)


def densenet():
    def conv(x, filters, size):
        x = layers.ReLU()(layers.BatchNormalization()(x))
        return layers.Conv2D(filters, size, padding="same", use_bias=False)(x)

    image = keras.Input((96, 96, 3))
    x = layers.Conv2D(64, 7, strides=2, padding="same", use_bias=False)(image)
    x = layers.MaxPooling2D(3, strides=2, padding="same")(layers.ReLU()(layers.BatchNormalization()(x)))
    filters = 64
    for stage, blocks in enumerate((6, 12, 24, 16)):
        if stage > 0:
            filters //= 2
            x = layers.AveragePooling2D(2)(conv(x, filters, 1))
        for _ in range(blocks):
            x = layers.Concatenate()([x, conv(conv(x, 128, 1), 32, 3)])
        filters += 32 * blocks
    x = layers.GlobalAveragePooling2D()(layers.ReLU()(layers.BatchNormalization()(x)))
    return compiled(keras.Model(image, layers.Dense(1000)(x)), keras.optimizers.SGD(0.1, momentum=0.9)), (96, 96, 3), 1000, 16


def convnext():
    image = keras.Input((64, 64, 3))
    x = layers.LayerNormalization(epsilon=1e-6)(layers.Conv2D(96, 4, strides=4)(image))
    for stage, width in enumerate((96, 192)):
        if stage > 0:
            x = layers.Conv2D(width, 2, strides=2)(layers.LayerNormalization(epsilon=1e-6)(x))
        for _ in range(3):
            y = layers.LayerNormalization(epsilon=1e-6)(layers.DepthwiseConv2D(7, padding="same")(x))
            x = layers.Add()([x, layers.Dense(width)(layers.Dense(4 * width, activation="gelu")(y))])
    x = layers.LayerNormalization(epsilon=1e-6)(layers.GlobalAveragePooling2D()(x))
    return compiled(keras.Model(image, layers.Dense(10)(x)), keras.optimizers.Adam()), (64, 64, 3), 10, 32


def autoencoder():
    image = keras.Input((64, 64, 3))
    x = layers.Rescaling(1 / 255)(image)
    for _ in range(2):
        x = layers.MaxPooling2D()(layers.Conv2D(32, 3, padding="same", activation="relu")(x))
    for _ in range(2):
        x = layers.Conv2DTranspose(32, 3, strides=2, padding="same", activation="relu")(x)
    model = keras.Model(image, layers.Rescaling(255)(layers.Conv2D(3, 3, padding="same", activation="sigmoid")(x)))
    model.compile(optimizer=keras.optimizers.Adam(), loss="mean_squared_error")
    return model, (64, 64, 3), None, 32


NETS = {function.__name__: function for function in (
    flowers, mnist, resnet20, mobilenet, resnet50, vgg11, unet, mlp, densenet, convnext, autoencoder, embedding, lstm, gru, transformer)}


def data(net, rows, shape):
    random = np.random.default_rng(1)
    if net in TEXTS:
        return random.integers(0, 20000, (rows,) + shape).astype("int32")
    return random.random((rows,) + shape, dtype="float32") * (255 if net in PIXELS else 1)
