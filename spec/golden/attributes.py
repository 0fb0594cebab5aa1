"""What the objects of Keras' classes show: the names of their public fields and methods, for attributes_spec.lua.

    /tmp/keras/bin/python spec/golden/attributes.py > spec/golden/attributes.txt

One line of JSON each: the class's path below keras, the arguments by name ("$": an object of that class), the fields with their values
where these are plain ("None" for None, null for others), the methods. What every class of a library has is in the line of its PLAIN class.
"""
import inspect
import json
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"], os.environ["CUDA_VISIBLE_DEVICES"], os.environ["KERAS_BACKEND"] = "3", "-1", "tensorflow"
import keras

DENSE, CELL, CONV = {"$": "layers.Dense", "units": 2}, {"$": "layers.LSTMCell", "units": 2}, {"filters": 2, "kernel_size": 3}
SIZE, RATE = {"height": 2, "width": 2}, {"initial_learning_rate": 0.25, "decay_steps": 4}
# The class of a library of which the names are listed whole.
PLAIN = {"layers": "Identity", "metrics": "Mean", "losses": "MeanSquaredError", "optimizers": "SGD", "optimizers.schedules": "CosineDecay",
         "initializers": "Zeros", "regularizers": "L1", "constraints": "NonNeg", "callbacks": "TerminateOnNaN"}
ARGUMENTS = {
    "layers": {
        "Activation": {"activation": "relu"}, "Embedding": {"input_dim": 3, "output_dim": 2},
        "ReversibleEmbedding": {"input_dim": 3, "output_dim": 2}, "EinsumDense": {"equation": "ab,bc->ac", "output_shape": 2},
        "Bidirectional": {"layer": {"$": "layers.LSTM", "units": 2}}, "CategoryEncoding": {"num_tokens": 3}, "CenterCrop": SIZE,
        "RandomCrop": SIZE, "Resizing": SIZE, "Discretization": {"num_bins": 3}, "Dot": {"axes": -1},
        "GroupQueryAttention": {"head_dim": 2, "num_query_heads": 2, "num_key_value_heads": 1}, "HashedCrossing": {"num_bins": 3},
        "Hashing": {"num_bins": 3}, "InputLayer": {"shape": [3]}, "MaxNumBoundingBoxes": {"max_number": 3},
        "MultiHeadAttention": {"num_heads": 2, "key_dim": 2}, "Permute": {"dims": [2, 1]}, "Pipeline": {"layers": [DENSE]},
        "RNN": {"cell": CELL}, "StackedRNNCells": {"cells": [CELL]}, "TimeDistributed": {"layer": DENSE},
        "SpectralNormalization": {"layer": DENSE}, "RandomTranslation": {"height_factor": .5, "width_factor": .5},
        "RandomZoom": {"height_factor": .5}, "RandomPosterization": {"factor": 2}, "RepeatVector": {"n": 2}, "Rescaling": {"scale": 2.0},
        "Reshape": {"target_shape": [2, 1]}, "GaussianNoise": {"stddev": .5},
        **{name: {"units": 2} for name in "Dense GRU LSTM SimpleRNN GRUCell LSTMCell SimpleRNNCell".split()},
        **{f"AveragePooling{d}D": {"pool_size": 2} for d in (1, 2, 3)}, **{f"DepthwiseConv{d}D": {"kernel_size": 3} for d in (1, 2)},
        **{name: {"rate": .5} for name in "AlphaDropout Dropout GaussianDropout".split()},
        **{f"SpatialDropout{d}D": {"rate": .5} for d in (1, 2, 3)},
        **{"Random" + name: {"factor": .5} for name in "Brightness ColorDegeneration Contrast Hue Rotation Saturation Sharpness".split()},
        **{f"{kind}{d}D": CONV for kind in ("Conv", "ConvLSTM") for d in (1, 2, 3)}, **{f"Conv{d}DTranspose": CONV for d in (1, 2, 3)},
        **{f"SeparableConv{d}D": CONV for d in (1, 2)},
        **{f"Adaptive{kind}Pooling{d}D": {"output_size": 2} for kind in ("Average", "Max") for d in (1, 2, 3)},
    },
    "metrics": {
        "IoU": {"num_classes": 3, "target_class_ids": [0]}, "OneHotIoU": {"num_classes": 3, "target_class_ids": [0]},
        "MeanIoU": {"num_classes": 3}, "OneHotMeanIoU": {"num_classes": 3}, "PrecisionAtRecall": {"recall": .5, "num_thresholds": 5},
        "RecallAtPrecision": {"precision": .5, "num_thresholds": 5}, "SensitivityAtSpecificity": {"specificity": .5, "num_thresholds": 5},
        "SpecificityAtSensitivity": {"sensitivity": .5, "num_thresholds": 5}, "AUC": {"num_thresholds": 5}},
    "optimizers": {"LossScaleOptimizer": {"inner_optimizer": {"$": "optimizers.Adam"}}},
    "optimizers.schedules": {
        "CosineDecay": RATE, "CosineDecayRestarts": {"initial_learning_rate": 0.25, "first_decay_steps": 4}, "PolynomialDecay": RATE,
        "ExponentialDecay": {**RATE, "decay_rate": .5}, "InverseTimeDecay": {**RATE, "decay_rate": .5},
        "PiecewiseConstantDecay": {"boundaries": [2], "values": [0.5, 0.25]}},
    "initializers": {"Constant": {"value": 3.0}}, "regularizers": {"L1": {"l1": 0.25}, "L2": {"l2": 0.5}},
    "losses": {"Huber": {"delta": 2.0}},
    "constraints": {"MaxNorm": {"max_value": 3, "axis": -1}, "UnitNorm": {"axis": -1}, "MinMaxNorm": {"axis": -1}},
}
# Classes of other libraries' things, and those that are extended.
LEFT_OUT = set("""Lambda FlaxLayer JaxLayer TFSMLayer TorchModuleWrapper Wrapper STFTSpectrogram MelSpectrogram InputSpec Layer Metric Loss
    MeanMetricWrapper Optimizer MultiOptimizer OptimizerMap LearningRateSchedule STFT STFTInitializer Initializer Regularizer
    Constraint""".split())


def find(path):
    value = keras
    for part in path.split("."):
        value = getattr(value, part)
    return value


def make(value):
    if isinstance(value, dict) and "$" in value:
        return find(value["$"])(**{key: make(entry) for key, entry in value.items() if key != "$"})
    return [make(entry) for entry in value] if isinstance(value, list) else value


def plain(value):
    if value is None:
        return "None"
    if isinstance(value, (bool, int, str, float)):
        return value
    if isinstance(value, (list, tuple)) and value and all(isinstance(entry, (int, float)) for entry in value):
        return list(value)
    return None


def shown(one):
    fields, methods = {}, []
    for name in dir(one):
        if name.startswith("_"):
            continue
        try:
            value = getattr(one, name)
        except Exception:      # what has no value before a layer is built
            value = object()
        if inspect.isroutine(value):
            methods.append(name)
        else:
            fields[name] = plain(value)
    return fields, methods


def main():
    for library, arguments in ARGUMENTS.items():
        module, common = find(library), None
        names = [n for n, c in vars(module).items() if inspect.isclass(c) and c.__name__ == n and n not in LEFT_OUT]
        for name in sorted(names, key=lambda n: (n != PLAIN[library], n)):
            given = arguments.get(name, {})
            fields, methods = shown(getattr(module, name)(**{key: make(value) for key, value in given.items()}))
            for left_out in ("name", "seed"):      # which Keras makes
                fields.pop(left_out, None)
            found = {**{n: v for n, v in fields.items() if common is None or n not in common or common[n] != v}}
            line = {"path": f"{library}.{name}", "arguments": given, "fields": found,
                    "methods": [n for n in methods if common is None or n not in common]}
            if common is None:
                common = {**fields, **dict.fromkeys(methods)}
            print(json.dumps(line))


main()
