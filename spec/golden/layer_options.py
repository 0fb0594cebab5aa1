"""Trainings with constraints and activity regularizers, for layer_options_spec.lua. See generate.py:

    /tmp/keras/bin/python spec/golden/layer_options.py [KIND ...]

writes layer_constraints.lua, layer_activity.lua and layer_conv_lstm.lua, or some of them: of each case the model as Keras describes
it, the seeds of its weights and data (generate.py's formula), the loss of each of five epochs of one batch, and the weights after
them, computed in float64.
"""
import json
import os
import sys
import textwrap

from generate import Seeds, make
import keras
import numpy as np
from keras import constraints, layers, optimizers, regularizers

HERE = os.path.dirname(os.path.abspath(__file__))
CONSTRAINTS_SEED, ACTIVITY_SEED, CONVOLUTIONS_SEED = 84000, 85000, 95500


def chain(*parts):
    """A Sequential model of what makes its layers."""
    return lambda: keras.Sequential([part() for part in parts])


def attention(make_layer):
    """The output of a layer of attention to itself, as a sum over steps."""
    def build():
        inputs = keras.Input((4, 6))
        return keras.Model(inputs, layers.Flatten()(make_layer()(inputs, inputs)))
    return build


def twice():
    """A layer that is called twice, and an inner model."""
    inputs = keras.Input((5,))
    shared = layers.Dense(5, activation="tanh", activity_regularizer=regularizers.L1(0.02))
    inner = keras.Sequential([keras.Input((5,)), layers.Dense(3, activity_regularizer="l2", kernel_constraint="max_norm")])
    return keras.Model(inputs, inner(shared(shared(inputs))))


def partly_frozen():
    """A model inside that was frozen, one layer of which trains again: it does, as its own flag says."""
    inputs = keras.Input((5,))
    inner = keras.Sequential([keras.Input((5,)), layers.Dense(4, activation="tanh", kernel_regularizer="l2"),
                              layers.Dense(3, kernel_constraint="max_norm")])
    inner.trainable = False
    inner.layers[1].trainable = True
    return keras.Model(inputs, layers.Dense(2)(inner(inputs)))


def sgd():
    return optimizers.SGD(0.1, momentum=0.9)


def constrained():
    c = constraints
    return [
        ("Dense", sgd, chain(
            lambda: keras.Input((5,)), lambda: layers.Dense(4, kernel_constraint=c.MaxNorm(0.5), bias_constraint="non_neg"),
            lambda: layers.Dense(2, kernel_constraint=c.MinMaxNorm(0.3, 0.8, 0.5, axis=1), bias_constraint=c.UnitNorm()))),
        ("Conv2D", lambda: optimizers.Adam(0.05), chain(
            lambda: keras.Input((5, 5, 2)), lambda: layers.Conv2D(3, 2, kernel_constraint=c.UnitNorm(axis=[0, 1, 2])),
            lambda: layers.DepthwiseConv2D(2, depthwise_constraint=c.NonNeg()),
            lambda: layers.SeparableConv2D(3, 2, depthwise_constraint=c.MaxNorm(0.6, axis=[0, 1]),
                                           pointwise_constraint=c.UnitNorm(axis=2), bias_constraint="max_norm"),
            lambda: layers.Conv2DTranspose(2, 2, kernel_constraint=c.MaxNorm(0.4, axis=-1)), lambda: layers.Flatten())),
        ("Embedding", sgd, chain(lambda: keras.Input((6,), dtype="int32"),
                                 lambda: layers.Embedding(7, 3, embeddings_constraint=c.MaxNorm(0.05, axis=1)),
                                 lambda: layers.Conv1D(2, 3, kernel_constraint="unit_norm"), lambda: layers.Flatten())),
        ("normalizations", sgd, chain(
            lambda: keras.Input((4, 6)), lambda: layers.LayerNormalization(gamma_constraint="non_neg", beta_constraint=c.MaxNorm(0.1)),
            lambda: layers.GroupNormalization(3, gamma_constraint=c.MinMaxNorm(1, 2), beta_constraint="unit_norm"),
            lambda: layers.BatchNormalization(gamma_constraint=c.UnitNorm(), beta_constraint="non_neg"),
            lambda: layers.PReLU(alpha_constraint=c.NonNeg()), lambda: layers.Flatten())),
        ("recurrent", lambda: optimizers.RMSprop(0.02), chain(
            lambda: keras.Input((4, 3)), lambda: layers.LSTM(3, return_sequences=True, kernel_constraint=c.MaxNorm(0.7),
                                                             recurrent_constraint=c.UnitNorm(axis=1), bias_constraint="non_neg"),
            lambda: layers.GRU(2, kernel_constraint="unit_norm", bias_constraint=c.MaxNorm(0.2, axis=[0, 1])))),
        ("attention", sgd, attention(lambda: layers.MultiHeadAttention(2, 3, kernel_constraint=c.UnitNorm(), bias_constraint="non_neg"))),
        ("accumulated gradients", lambda: optimizers.SGD(0.1, gradient_accumulation_steps=2), chain(
            lambda: keras.Input((5,)), lambda: layers.Dense(3, kernel_constraint=c.MinMaxNorm(2, 3, rate=0.25)))),
        ("averages", lambda: optimizers.Adam(0.05, use_ema=True, ema_momentum=0.8, ema_overwrite_frequency=2), chain(
            lambda: keras.Input((5,)), lambda: layers.Dense(3, kernel_constraint=c.UnitNorm(), bias_constraint=c.NonNeg()))),
        ("a partly frozen model", sgd, partly_frozen),
    ]


def regularized():
    r = regularizers
    return [
        ("Dense", sgd, chain(lambda: keras.Input((5,)), lambda: layers.Dense(4, activation="relu", activity_regularizer=r.L1L2(0.1, 0.2)),
                             lambda: layers.Dense(2, activity_regularizer="l2", kernel_regularizer="l1"))),
        ("Conv2D", sgd, chain(lambda: keras.Input((5, 5, 2)), lambda: layers.Conv2D(3, 2, activity_regularizer=r.L2(0.05)),
                              lambda: layers.DepthwiseConv2D(2, activity_regularizer="l1"),
                              lambda: layers.SeparableConv2D(3, 2, activity_regularizer=r.L1L2(0.01, 0.02)), lambda: layers.Flatten())),
        ("Embedding", sgd, chain(lambda: keras.Input((6,), dtype="int32"), lambda: layers.Embedding(7, 3, activity_regularizer=r.L1(0.2)),
                                 lambda: layers.Flatten())),
        ("other layers", sgd, chain(
            lambda: keras.Input((6,)), lambda: layers.Dense(4), lambda: layers.BatchNormalization(activity_regularizer=r.L2(0.1)),
            lambda: layers.ReLU(activity_regularizer=r.L1(0.3)), lambda: layers.ActivityRegularization(l1=0.02, l2=0.01),
            lambda: layers.Dense(2))),
        ("recurrent", sgd, chain(lambda: keras.Input((4, 3)), lambda: layers.LSTM(3, return_sequences=True, activity_regularizer="l2"),
                                 lambda: layers.SimpleRNN(3, return_sequences=True, activity_regularizer="l2"),
                                 lambda: layers.GRU(2, activity_regularizer=r.L1(0.1)))),
        ("MultiHeadAttention", sgd, attention(lambda: layers.MultiHeadAttention(2, 3, activity_regularizer=r.L1L2(0.02, 0.01)))),
        ("GroupQueryAttention", sgd, attention(lambda: layers.GroupQueryAttention(3, 4, 2, activity_regularizer=r.L2(0.02)))),
        ("called twice", sgd, twice),
    ]


def recurrent_convolutions():
    c, r = constraints, regularizers
    return [
        ("ConvLSTM1D", sgd, chain(
            lambda: keras.Input((4, 5, 2)), lambda: layers.ConvLSTM1D(3, 3, padding="same", return_sequences=True,
                                                                      kernel_constraint=c.MaxNorm(0.7), bias_constraint="non_neg"),
            lambda: layers.ConvLSTM1D(2, 2, strides=2, go_backwards=True, recurrent_constraint=c.UnitNorm(axis=[0, 1])),
            lambda: layers.Flatten())),
        ("ConvLSTM2D", lambda: optimizers.Adam(0.02), chain(
            lambda: keras.Input((3, 5, 4, 2)), lambda: layers.ConvLSTM2D(3, 3, return_sequences=True, recurrent_activation="hard_sigmoid"),
            lambda: layers.ConvLSTM2D(2, 2, padding="same", dilation_rate=2, kernel_constraint="unit_norm"),
            lambda: layers.Flatten())),
        ("ConvLSTM3D", lambda: optimizers.RMSprop(0.02), chain(
            lambda: keras.Input((3, 4, 3, 3, 2)), lambda: layers.ConvLSTM3D(2, 2, recurrent_constraint="non_neg"),
            lambda: layers.Flatten())),
        ("ConvLSTM2D with regularizers", sgd, chain(lambda: keras.Input((3, 4, 4, 2)), lambda: layers.ConvLSTM2D(
            3, 2, kernel_regularizer=r.L2(0.02), recurrent_regularizer=r.L1(0.01), bias_regularizer="l2", activity_regularizer=r.L1(0.1)),
            lambda: layers.Flatten())),
    ]


def text(value):
    if isinstance(value, dict):
        return "{ " + ", ".join("%s = %s" % (key, text(entry)) for key, entry in value.items()) + " }"
    if isinstance(value, list):
        return "{ " + ", ".join(map(text, value)) + " }"
    return "%.9g" % value if isinstance(value, float) else repr(value)


def precision(dtype):
    keras.config.set_floatx(dtype)
    keras.config.set_dtype_policy(dtype)


def run(seeds, kind, name, optimizer, build):
    described = build().to_json()
    precision("float64")
    model, chosen = build(), optimizer()
    inputs, shape = model.inputs[0], model.inputs[0].shape[1:]
    x = seeds.labels([8, *shape], 7) if inputs.dtype == "int32" else seeds.uniform([8, *shape])
    y = seeds.uniform([8, *model.output_shape[1:]])
    weights = [seeds.weight(variable) for variable in model.weights]
    model.set_weights([make(entry) for entry in weights])
    model.compile(chosen, "mse")
    losses = model.fit(make(x), make(y), batch_size=8, epochs=5, verbose=0).history["loss"]
    after = [np.ravel(value).tolist() for value in model.get_weights()]
    precision("float32")
    config = keras.saving.serialize_keras_object(optimizer())
    return {"kind": kind, "name": name, "model": described, "optimizer": json.dumps(config), "x": x, "y": y, "weights": weights,
            "losses": losses, "after": after}


def entry_text(case):
    lines = []
    for key, value in case.items():
        if key in ("model", "optimizer"):      # between words, where JSON may have any space
            value = "[[%s]]" % value
        else:
            value = text(value).replace("'", '"')
        lines.append(textwrap.fill("%s = %s," % (key, value), 138, initial_indent="  ", subsequent_indent="    ", break_long_words=False,
                                   break_on_hyphens=False))
    return "{\n%s\n}" % "\n".join(lines)


def main():
    lists = (("constraints", CONSTRAINTS_SEED, constrained), ("activity", ACTIVITY_SEED, regularized),
             ("conv_lstm", CONVOLUTIONS_SEED, recurrent_convolutions))
    for kind, first, entries in lists:
        if sys.argv[1:] and kind not in sys.argv[1:]:
            continue
        seeds = Seeds(first)
        cases = [run(seeds, kind, *entry) for entry in entries()]
        with open(os.path.join(HERE, "layer_%s.lua" % kind), "w") as file:
            file.write("-- Generated by spec/golden/layer_options.py with Keras %s. Do not edit.\nreturn {\n" % keras.__version__)
            file.write(",\n".join(map(entry_text, cases)) + "\n}\n")


if __name__ == "__main__":
    main()
