"""Models in which masks travel, of Keras: writes masks.lua: what they predict, the loss and the gradients of their weights, what evaluate
and two steps of fit give. Run with Keras and TensorFlow installed:
    python spec/golden/masks.py
Inputs and weights follow the formula of generate.py; the models are built again, by the same names, in spec/golden/masks_spec.lua."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers

from generate import Seeds, make, write_entries

N, T, WORDS, SIZE = 4, 6, 7, 5


def inputs():
    return keras.Input((T,), dtype="int32"), keras.Input((T, 3))


def words(ids):
    return layers.Embedding(WORDS, SIZE, mask_zero=True)(ids)


def steps(x):
    """A sequence of which steps are left out by Masking: SIZE features."""
    return layers.Dense(SIZE)(layers.Masking(0.5)(x))


def pooled(x):
    return layers.GlobalAveragePooling1D()(x)


class Twice(layers.Layer):
    def __init__(self, **options):
        super().__init__(**options)
        self.supports_masking = True

    def call(self, x, mask=None):
        return x * 2 if mask is None else x * 2 * keras.ops.cast(keras.ops.expand_dims(mask, -1), x.dtype)


def nested(ids):
    inner_input = keras.Input((T, SIZE))
    inner = keras.Model(inner_input, layers.Dense(SIZE, activation="relu")(inner_input))
    return pooled(inner(words(ids)))


def shared(ids, x):
    dense = layers.Dense(SIZE)
    return layers.Concatenate()([pooled(dense(words(ids))), pooled(dense(steps(x)))])


def encoder(ids):
    h = words(ids)
    h = layers.LayerNormalization()(h + layers.MultiHeadAttention(2, 3)(h, h))
    return pooled(h)


def added(ids):
    h = words(ids)
    return pooled(layers.Add()([h, layers.MultiHeadAttention(2, 3)(h, h)]))


def normalized(ids):
    normalize = layers.BatchNormalization(momentum=0.5)
    return pooled(normalize(words(ids)))


def decoded(ids, x):
    """The decoder has a state, so that its mask does not come from its input."""
    _, h, c = layers.LSTM(SIZE, return_state=True)(words(ids))
    return layers.LSTM(SIZE, return_sequences=True)(steps(x), initial_state=[h, c])


# name: what it makes of (ids, x); the rank of its output says what the targets are.
MODELS = {
    "pooled": lambda ids, x: pooled(words(ids)),
    "masking, pooled": lambda ids, x: pooled(steps(x)),
    "through many layers": lambda ids, x: pooled(
        layers.Dropout(0.3)(layers.ReLU()(layers.LayerNormalization()(layers.Activation("tanh")(words(ids)))))),
    "ended": lambda ids, x: pooled(layers.Conv1D(3, 2, padding="same")(words(ids))),
    "batch normalization": lambda ids, x: normalized(ids),
    "add": lambda ids, x: pooled(layers.Add()([words(ids), steps(x)])),
    "add, one without": lambda ids, x: pooled(layers.Add()([words(ids), layers.Dense(SIZE)(x)])),
    "multiply": lambda ids, x: pooled(layers.Multiply()([words(ids), steps(x)])),
    "multiply, one without": lambda ids, x: pooled(layers.Multiply()([words(ids), layers.Dense(SIZE)(x)])),
    "maximum": lambda ids, x: pooled(layers.Maximum()([words(ids), steps(x)])),
    "minimum": lambda ids, x: pooled(layers.Minimum()([steps(x), words(ids)])),
    "minimum, one without": lambda ids, x: pooled(layers.Minimum()([layers.Dense(SIZE)(x), words(ids)])),
    "concatenate": lambda ids, x: pooled(layers.Concatenate()([words(ids), steps(x)])),
    "concatenate, one without": lambda ids, x: pooled(layers.Concatenate()([words(ids), x])),
    "concatenate, along the steps": lambda ids, x: pooled(layers.Concatenate(axis=1)([words(ids), steps(x)])),
    "attention of itself": lambda ids, x: pooled(layers.MultiHeadAttention(2, 3)(words(ids), words(ids))),
    "attention of another": lambda ids, x: pooled(layers.MultiHeadAttention(2, 3)(steps(x), words(ids), use_causal_mask=True)),
    "an encoder": lambda ids, x: encoder(ids),
    "attention, then add": lambda ids, x: added(ids),
    "group query attention": lambda ids, x: pooled(layers.GroupQueryAttention(2, 4, 2)(words(ids), steps(x))),
    "dot attention": lambda ids, x: pooled(layers.Attention()([words(ids), steps(x)])),
    "additive attention": lambda ids, x: pooled(layers.AdditiveAttention()([steps(x), words(ids)])),
    "nested": lambda ids, x: nested(ids),
    "shared": shared,
    "own layer": lambda ids, x: pooled(Twice()(words(ids))),
    "given": lambda ids, x: layers.Dense(2)(
        layers.GlobalAveragePooling1D()(x, mask=layers.Embedding(WORDS, SIZE, mask_zero=True).compute_mask(ids))),
    "every step": lambda ids, x: layers.Dense(3)(words(ids)),
    "every step, of Masking": lambda ids, x: layers.Dense(3)(steps(x)),
    "recurrent layers": lambda ids, x: layers.LSTM(4)(layers.GRU(SIZE, return_sequences=True)(words(ids))),
    "recurrent, backwards": lambda ids, x: pooled(
        layers.SimpleRNN(3, return_sequences=True)(layers.LSTM(SIZE, return_sequences=True, go_backwards=True)(steps(x)))),
    "recurrent, with a state": lambda ids, x: pooled(decoded(ids, x)),
    "dot": lambda ids, x: pooled(layers.Dot(2)([words(ids), steps(x)])),
}


def run(seeds):
    for name, build in MODELS.items():
        keras.backend.clear_session()
        ids, x = inputs()
        model = keras.Model([ids, x], build(ids, x))
        weights = [seeds.weight(variable) for variable in model.weights]
        model.set_weights([make(tensor) for tensor in weights])
        id_tensor, x_tensor = seeds.labels([N, T], WORDS), seeds.uniform([N, T, 3])
        values = make(id_tensor), make(x_tensor)
        values[0][0, 2:], values[0][1, 0] = 0, 0      # what is left out: of the first two rows
        values[1][0, 3:], values[1][2, 1] = 0.5, 0.5
        targets = seeds.uniform((N,) + model.output_shape[1:])
        sample_weights = seeds.uniform([N, T] if len(model.output_shape) == 3 else [N], 0.5, 2.0)
        prediction = model(list(values))
        model.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse", metrics=["mae"], weighted_metrics=["mse"])
        evaluated = model.evaluate(list(values), make(targets), verbose=0, return_dict=True)
        weighted = model.evaluate(list(values), make(targets), sample_weight=make(sample_weights), verbose=0, return_dict=True)
        fitted = []
        if "Dropout" not in str([type(layer) for layer in model.layers]):
            for _ in range(2):
                fitted.append(float(model.train_on_batch(list(values), make(targets), sample_weight=make(sample_weights))[0]))
        yield {"name": name, "ids": id_tensor, "x": x_tensor, "weights": weights, "targets": targets, "sample_weights": sample_weights,
               "prediction": np.asarray(prediction).reshape(-1).tolist(), "evaluated": evaluated, "weighted": weighted, "fitted": fitted}


if __name__ == "__main__":
    tf.random.set_seed(1)
    keras.config.set_floatx("float32")
    write_entries("masks", list(run(Seeds(20000))))
