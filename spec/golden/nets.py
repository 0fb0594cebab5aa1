"""The nets whose training is compared step by step; spec/golden/training_spec.lua builds the same ones."""
from keras import Input, Model, Sequential, layers


def mnist(size):
    return Sequential([
        Input((size, size)), layers.Reshape((size, size, 1)), layers.Conv2D(32, 3, activation="relu"), layers.Flatten(),
        layers.Dense(128, activation="relu"), layers.Dense(10)])


def flowers(size):
    net = [Input((size, size, 3)), layers.Rescaling(1 / 255)]
    for filters in (16, 32, 64):
        net += [layers.Conv2D(filters, 3, padding="same", activation="relu"), layers.MaxPooling2D()]
    return Sequential(net + [layers.Flatten(), layers.Dense(128, activation="relu"), layers.Dense(5, activation="softmax")])


def residual(size):
    """One block with batch normalization and a projection as its short cut."""
    x = Input((size, size, 4))
    h = layers.Conv2D(8, 3, padding="same", use_bias=False)(x)
    h = layers.ReLU()(layers.BatchNormalization(momentum=0.9)(h))
    h = layers.BatchNormalization(momentum=0.9)(layers.Conv2D(8, 3, padding="same", use_bias=False)(h))
    h = layers.ReLU()(layers.Add()([h, layers.Conv2D(8, 1)(x)]))
    return Model(x, layers.Dense(5)(layers.GlobalAveragePooling2D()(h)))


def odd(size):
    """Shapes that fit no vector: 3 to 17 to 33 channels, a 5 x 5 kernel with stride 2, a 3 x 3 pool with stride 2."""
    return Sequential([
        Input((size, size, 3)), layers.Conv2D(17, 5, strides=2, padding="same", activation="relu"), layers.Conv2D(33, 3, activation="relu"),
        layers.MaxPooling2D(3, strides=2), layers.Flatten(), layers.Dense(11, activation="tanh"), layers.Dense(3)])


NETS = {"mnist": mnist, "flowers": flowers, "residual": residual, "odd": odd}
