"""Files of Keras 2, for legacy_models_spec.lua to load: writes legacy_models/NAME.h5, trained for two steps, and NAME.npz (inputs,
predictions, losses of five more). Needs tf_keras, which is Keras 2 with TensorFlow:

    pip install tf_keras
    python spec/golden/legacy_models.py
"""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import numpy as np
import tf_keras as keras

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "legacy_models")
layers = keras.layers
random = np.random.RandomState(5)


def pictures():
    return keras.Sequential([
        layers.Conv2D(4, 3, padding="same", input_shape=(8, 6, 3), kernel_regularizer=keras.regularizers.l2(0.01)),
        layers.BatchNormalization(), layers.LeakyReLU(alpha=0.2), layers.DepthwiseConv2D(3), layers.SeparableConv2D(3, 2),
        layers.MaxPooling2D(), layers.Conv2DTranspose(2, 2, strides=2, activation="swish"), layers.Flatten(), layers.Dropout(0.0),
        layers.Dense(3, activation="softmax", kernel_initializer="he_normal")], name="pictures")


def graph():
    """Models in models, called twice, one of the calls an output; two inputs; states and values given by name."""
    steps, other = keras.Input((5, 4), name="steps"), keras.Input((4,), name="other")
    inside = keras.Input((4,))
    inner = keras.Model(inside, layers.Add()([inside, layers.Dense(4, activation="tanh")(inside)]), name="inner")
    shared = layers.Dense(4, activation="relu", name="shared")
    lstm = layers.LSTM(4)(steps, initial_state=[shared(other), inner(other)])
    attended = layers.MultiHeadAttention(2, 3)(layers.LayerNormalization()(steps), value=layers.Conv1D(4, 2, padding="causal")(steps))
    gru = layers.Bidirectional(layers.GRU(3, return_sequences=True))(attended)
    joined = layers.Concatenate()([lstm, shared(lstm), layers.GlobalAveragePooling1D()(gru)])
    again = inner(layers.Dense(4)(joined))
    return keras.Model([steps, other], [layers.Dense(2, name="scores")(joined), again], name="graph")


def words():
    return keras.Sequential([layers.Embedding(9, 4, input_length=5), layers.SimpleRNN(3, return_sequences=True), layers.GRU(2),
                             layers.Dense(1, activation="sigmoid")], name="words")


MODELS = {
    "pictures": (pictures, [(8, 6, 3)], dict(optimizer=keras.optimizers.SGD(0.05, momentum=0.5), loss="categorical_crossentropy",
                                             metrics=["accuracy"])),
    "graph": (graph, [(5, 4), (4,)], dict(optimizer=keras.optimizers.legacy.Adam(0.01, epsilon=0.01), loss=["mse", keras.losses.Huber()],
                                          loss_weights=[1.0, 0.5])),
    "words": (words, [(5,)], dict(optimizer="rmsprop", loss=keras.losses.BinaryCrossentropy(), metrics=[keras.metrics.AUC(name="auc")])),
}


def main():
    os.makedirs(FOLDER, exist_ok=True)
    for name, (make, shapes, compiled) in MODELS.items():
        keras.utils.set_random_seed(3)
        model = make()
        xs = [random.uniform(-1, 1, (6,) + shape).astype("float32") for shape in shapes]
        if name == "words":
            xs = [random.randint(0, 9, (6, 5)).astype("int32")]
        first = model.predict(xs, verbose=0)
        ys = [random.uniform(0, 1, y.shape).astype("float32") for y in (first if isinstance(first, list) else [first])]
        if name == "words":
            ys = [np.round(ys[0])]
        if name == "pictures":      # TensorFlow's gradient of a softmax holds for targets that sum to 1
            ys = [np.eye(3, dtype="float32")[random.randint(0, 3, 6)]]
        model.compile(**compiled)
        path, target = os.path.join(FOLDER, name + ".h5"), ys if len(ys) > 1 else ys[0]
        for _ in range(2):
            model.train_on_batch(xs if len(xs) > 1 else xs[0], target)
        model.save(path)
        found = model.predict(xs, verbose=0)
        values = {f"x{i + 1}": x for i, x in enumerate(xs)} | {f"t{i + 1}": y for i, y in enumerate(ys)}
        values |= {f"y{i + 1}": y for i, y in enumerate(found if isinstance(found, list) else [found])}
        values["loss"] = np.array([model.train_on_batch(xs if len(xs) > 1 else xs[0], target, return_dict=True, reset_metrics=True)["loss"]
                                   for _ in range(5)], "float32")
        np.savez(os.path.join(FOLDER, name + ".npz"), **values)


if __name__ == "__main__":
    main()
