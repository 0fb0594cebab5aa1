"""All losses and metrics of Keras, for predictions of rank 1 to 4 and sample weights of every shape that it takes: writes
sample_weights.json. Run with Keras and TensorFlow installed:
    python spec/golden/sample_weights.py
Inputs follow the formula of generate.py; weights are numbered from `seed` in the order of `results`, each of which is "shape:result".
What Keras refuses is left out, and so are two things that are different here: weights of a loss that have a higher rank than its values are
refused where Keras broadcasts several values with them, and those of is_ambiguous()."""
import json
import os
import re

import keras
import numpy as np
import tensorflow as tf

from generate import HERE, Seeds, make

PROBABILITIES = (0.0625, 0.9375)
SHAPES = [[6], [6, 1], [6, 4], [6, 3, 4], [3, 3, 4], [2, 3, 2, 4]]
BINARY = {"BinaryCrossentropy", "BinaryFocalCrossentropy", "Hinge", "SquaredHinge", "BinaryAccuracy", "Precision", "Recall", "AUC",
          "TruePositives", "TrueNegatives", "FalsePositives", "FalseNegatives", "F1Score", "FBetaScore", "BinaryIoU",
          "SensitivityAtSpecificity", "SpecificityAtSensitivity", "PrecisionAtRecall", "RecallAtPrecision"}
CONFUSED = {"Precision", "Recall", "AUC", "TruePositives", "TrueNegatives", "FalsePositives", "FalseNegatives",
            "SensitivityAtSpecificity", "SpecificityAtSensitivity", "PrecisionAtRecall", "RecallAtPrecision"}
LABELS = {"Accuracy", "MeanIoU", "IoU"}
SPARSE = {"CategoricalGeneralizedCrossEntropy"}
OPTIONS = {"TopKCategoricalAccuracy": {"k": 2}, "SparseTopKCategoricalAccuracy": {"k": 2}, "AUC": {"num_thresholds": 5},
           "MeanIoU": {"num_classes": 2}, "IoU": {"num_classes": 2, "target_class_ids": [0]},
           "OneHotIoU": {"num_classes": 4, "target_class_ids": [0, 2]}, "OneHotMeanIoU": {"num_classes": 4},
           "SensitivityAtSpecificity": {"specificity": 0.5, "num_thresholds": 9},
           "SpecificityAtSensitivity": {"sensitivity": 0.5, "num_thresholds": 9},
           "PrecisionAtRecall": {"recall": 0.5, "num_thresholds": 9}, "RecallAtPrecision": {"precision": 0.5, "num_thresholds": 9}}
OF_CLASSES = re.compile("Categorical|OneHot|TopK|IoU")
NEVER_FITTED = {"Hinge", "SquaredHinge", "KLDivergence", "Poisson"}
# CTC and Circle compare other things than values of one shape (measures.py); the others are bases.
LEFT_OUT = {"Loss", "CTC", "Circle", "Metric", "MeanMetricWrapper"}
REDUCED = ["MeanSquaredError", "CosineSimilarity", "SparseCategoricalCrossentropy"]      # with the other reductions, too
HALVES = ["MeanSquaredError", "MeanAbsoluteError", "Huber", "Hinge", "Poisson"]


def names_of(library, base):
    found = [name for name in dir(library) if isinstance(getattr(library, name), type) and issubclass(getattr(library, name), base)]
    return [name for name in found if name not in LEFT_OUT]


def weights_of(shape):
    """No weights, and shapes that begin or end as `shape` does, with axes of length 1 in between."""
    found = [None, [], [1]]
    for count in range(1, len(shape) + 1):
        found += [shape[:count], shape[:count] + [1], shape[-count:], [1] + shape[1:count]]
        found += [shape[:count] + [1] * (len(shape) - count)]
    return [w for i, w in enumerate(found) if w not in found[:i] and (w is None or len(w) <= max(2, len(shape)))]


def targets_of(seeds, kind, name, shape):
    """The y_true of the manifest that a loss or metric may be given: of the same shape, and of one axis more or less of length 1, where
    Keras does not broadcast these to {n, n}."""
    def target(of):
        return seeds.labels(of, 2) if name in BINARY | LABELS else seeds.uniform(of, *PROBABILITIES)
    if name.startswith("Sparse"):
        return [seeds.labels(shape[:-1], shape[-1]), seeds.labels(shape[:-1] + [1], shape[-1])] if len(shape) > 1 else []
    if name in SPARSE:
        return [seeds.labels(shape[:-1], shape[-1])] if shape[-1] > 1 and len(shape) > 1 else []
    if OF_CLASSES.search(name) or kind == "metric" and name in NEVER_FITTED:
        return [target(shape)]
    if shape == [6]:
        return [target([6]), target([6, 1])]
    return [target(shape), target([6])] if shape == [6, 1] else [target(shape)]


def is_ambiguous(weights, shape):
    """{n} for {n, n}: Keras, where it takes such weights at all, gives them to the last axis, since it broadcasts; here each first axis
    that fits has its weights, whatever the other lengths are."""
    return weights not in (None, [], [1]) and len(weights) < len(shape) and weights == shape[:len(weights)] and weights[0] > 1


def text(shape, value):
    value = np.asarray(value, "float64").reshape(-1)
    return f"{'none' if shape is None else 'x'.join(map(str, shape))}:{'%.7g' % np.mean(value)}"


def one(library, name, options, y_true, y_pred, weight):
    made = getattr(library, name)(**options)
    if library is keras.losses:
        return made(y_true, y_pred, sample_weight=weight)
    if name in ("Mean", "Sum"):
        made.update_state(y_pred, sample_weight=weight)
        made.update_state(y_pred[:2])
    else:
        made.update_state(y_true, y_pred, sample_weight=weight)
        if np.ndim(y_true) == np.ndim(y_pred) and y_true.shape[0] == y_pred.shape[0]:
            made.update_state(y_true[:2], y_pred[:2])
    return made.result()


def case(seeds, kind, name, shape, y_true, options):
    library = keras.losses if kind == "loss" else keras.metrics
    y_pred = seeds.labels(shape, 2) if name in LABELS else seeds.uniform(shape, *PROBABILITIES)
    first, results = seeds.last + 1, []
    of_values = values_shape(name, options, y_true, y_pred) if kind == "loss" else shape if name in CONFUSED else None
    for weights in weights_of(shape):
        w = seeds.uniform(weights or [], 0.125, 2.0)
        if of_values is not None and is_ambiguous(weights, of_values):
            continue
        if kind == "loss" and weights is not None and of_values and len(weights) > len(of_values):
            if weights[-1] != 1 or len(weights) > len(of_values) + 1:
                continue
        try:
            result = one(library, name, options, make(y_true), make(y_pred), None if weights is None else make(w))
            if np.all(np.isfinite(result)):
                results.append(f"{w['seed'] - first}:" + text(weights, result))
        except Exception:
            continue
    if results:
        yield {"kind": kind, "name": name, "options": options, "y_true": y_true, "y_pred": y_pred, "seed": first, "results": results}


def values_shape(name, options, y_true, y_pred):
    try:
        return getattr(keras.losses, name)(**options).call(tf.constant(make(y_true)), tf.constant(make(y_pred))).shape.as_list()
    except Exception:
        return []


def run(seeds):
    for kind, names in (("loss", names_of(keras.losses, keras.losses.Loss)), ("metric", names_of(keras.metrics, keras.metrics.Metric))):
        for name in names:
            for shape in SHAPES:
                for y_true in targets_of(seeds, kind, name, shape):
                    yield from case(seeds, kind, name, shape, y_true, OPTIONS.get(name, {}))
    for name in REDUCED:
        for reduction in ("sum", "mean_with_sample_weight", "none"):
            for shape in SHAPES:
                for y_true in targets_of(seeds, "loss", name, shape)[:1]:
                    yield from case(seeds, "loss", name, shape, y_true, {"reduction": reduction})


def in_other_dtypes(seeds):
    for name in names_of(keras.losses, keras.losses.Loss):
        for dtype in ("float64", "float16", "bfloat16"):
            if dtype != "float64" and name not in HALVES:
                continue
            shape = [5, 4]
            y_true, y_pred = targets_of(seeds, "loss", name, shape)[0], seeds.uniform(shape, *PROBABILITIES)
            weights = seeds.uniform([5], 0.125, 2.0)
            try:
                loss = getattr(keras.losses, name)(dtype=dtype)
                result = loss(make(y_true), make(y_pred), sample_weight=make(weights))
            except Exception as problem:
                print(name, dtype, str(problem)[:200])
                continue
            yield {"kind": "dtype", "name": name, "dtype": dtype, "y_true": y_true, "y_pred": y_pred, "weights": weights,
                   "result": float(tf.cast(result, "float64")), "result_dtype": result.dtype.name}


def main():
    seeds = Seeds(60000)
    cases = ",\n".join(json.dumps(entry, separators=(",", ":")) for part in (run, in_other_dtypes) for entry in part(seeds))
    with open(os.path.join(HERE, "sample_weights.json"), "w") as file:
        file.write('{"keras":"%s","tensorflow":"%s","cases":[\n%s\n]}\n' % (keras.__version__, tf.__version__, cases))


if __name__ == "__main__":
    main()
