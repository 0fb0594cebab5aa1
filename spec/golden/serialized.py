"""Golden values: what Keras' serialize functions say of objects, for serialized_spec.lua to compare with.

    python3 -m venv /tmp/keras && /tmp/keras/bin/pip install tensorflow-cpu
    /tmp/keras/bin/python spec/golden/serialized.py

writes serialized.txt: in each line a library and the JSON text of an object's entry, for its classes by default and with some options.
"""
import inspect
import json
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras

HERE = os.path.dirname(os.path.abspath(__file__))
SOME = {
    "initializers": [("Constant", {"value": 3.0}), ("RandomNormal", {"mean": 1.0, "stddev": 0.5}), ("Orthogonal", {"gain": 2.0}),
                     ("VarianceScaling", {"scale": 2.0, "mode": "fan_out", "distribution": "uniform"})],
    "regularizers": [("L1", {"l1": 0.25}), ("L2", {"l2": 0.5}), ("L1L2", {"l1": 0.25, "l2": 0.5}),
                     ("OrthogonalRegularizer", {"factor": 0.25, "mode": "columns"})],
    "constraints": [("MaxNorm", {"max_value": 3, "axis": [0, 1]}), ("MinMaxNorm", {"min_value": 0.5, "rate": 0.25, "axis": 1})],
    "losses": [("Huber", {"delta": 0.5}), ("SparseCategoricalCrossentropy", {"from_logits": True, "ignore_class": 3}),
               ("BinaryFocalCrossentropy", {"gamma": 3.0}), ("CategoricalCrossentropy", {"label_smoothing": 0.25})],
    "metrics": [("AUC", {"num_thresholds": 20, "curve": "PR"}), ("Precision", {"thresholds": 0.25, "name": "p"}),
                ("TopKCategoricalAccuracy", {"k": 3}), ("MeanIoU", {"num_classes": 3})],
    "optimizers": [("SGD", {"momentum": 0.5, "nesterov": True}), ("Adam", {"beta_1": 0.5, "clipnorm": 2.0}),
                   ("AdamW", {"weight_decay": 0.25})],
    "optimizers.schedules": [("ExponentialDecay", {"initial_learning_rate": 0.5, "decay_steps": 10, "decay_rate": 0.5}),
                             ("CosineDecay", {"initial_learning_rate": 0.5, "decay_steps": 10, "alpha": 0.25}),
                             ("PiecewiseConstantDecay", {"boundaries": [5, 10], "values": [1.0, 0.5, 0.25]}),
                             ("PolynomialDecay", {"initial_learning_rate": 0.5, "decay_steps": 10, "power": 2.0})],
    "layers": [("Dense", {"units": 3, "activation": "relu", "kernel_regularizer": "l2"}), ("Conv2D", {"filters": 3, "kernel_size": (3, 2)}),
               ("LSTM", {"units": 3, "return_sequences": True}), ("BatchNormalization", {"momentum": 0.5, "axis": 1}),
               ("MultiHeadAttention", {"num_heads": 2, "key_dim": 3}), ("Dropout", {"rate": 0.25}),
               ("STFTSpectrogram", {"frame_length": 16, "frame_step": 8, "scaling": None, "window": None})],
}
FUNCTIONS = {"losses": ["binary_crossentropy", "mean_squared_error", "kl_divergence"],
             "metrics": ["binary_accuracy", "mean_absolute_error"]}
# Which flowlua does not have.
LEFT_OUT = {"STFT", "Initializer", "Regularizer", "Constraint", "Loss", "Metric", "Optimizer", "LearningRateSchedule", "MeanMetricWrapper"}


def default_of(cls):
    """An object made without arguments, or None where some are needed."""
    try:
        return cls()
    except TypeError:
        return None


def main():
    with open(os.path.join(HERE, "serialized.txt"), "w") as file:
        for library, some in SOME.items():
            module = keras
            for part in library.split("."):
                module = getattr(module, part)
            objects = [getattr(module, name)(**options) for name, options in some]
            if library in ("initializers", "regularizers", "constraints", "losses", "metrics", "optimizers"):
                classes = [(n, v) for n, v in vars(module).items() if inspect.isclass(v)]
                names = sorted(n for n, v in classes if n == v.__name__ and n not in LEFT_OUT)
                objects += [made for made in (default_of(getattr(module, n)) for n in names) if made is not None]
            objects += [getattr(module, name) for name in FUNCTIONS.get(library, [])]
            for one in objects:
                file.write("%s %s\n" % (library, json.dumps(module.serialize(one), sort_keys=True)))


main()
