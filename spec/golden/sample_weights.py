"""Losses and metrics of Keras with sample weights of every shape that it takes: writes sample_weights.lua. Run with Keras and TensorFlow
installed:
    python spec/golden/sample_weights.py
Inputs follow the formula of generate.py. What Keras refuses is left out, and so are two things that are different here: y_true and y_pred
of rank 1 are one value a sample, not a single vector, and weights of a higher rank than the values are refused, not broadcast with them."""
import keras
import tensorflow as tf

from generate import Seeds, make, write_entries

PROBABILITIES = (0.0625, 0.9375)
N, T, C = 6, 3, 4
WEIGHTS = [[], [1], [N], [N, 1], [T], [1, T], [N, T], [N, T, 1], [N, C], [C], [N, T, C], [N, 1, 1]]
LOSSES = ["MeanSquaredError", "MeanAbsoluteError", "BinaryCrossentropy", "CategoricalCrossentropy", "SparseCategoricalCrossentropy",
          "Huber",
          "KLDivergence", "CosineSimilarity", "Hinge"]
METRICS = ["MeanSquaredError", "RootMeanSquaredError", "Accuracy", "BinaryAccuracy", "CategoricalAccuracy", "SparseCategoricalAccuracy",
           "TopKCategoricalAccuracy", "SparseTopKCategoricalAccuracy", "BinaryCrossentropy", "CategoricalCrossentropy", "CosineSimilarity",
           "Precision", "Recall", "TruePositives", "AUC", "F1Score", "Mean", "Sum"]
ELEMENTWISE = ["RootMeanSquaredError", "Accuracy", "BinaryAccuracy", "Precision", "Recall", "TruePositives", "AUC", "Mean", "Sum"]
OPTIONS = {"TopKCategoricalAccuracy": {"k": 2}, "SparseTopKCategoricalAccuracy": {"k": 2}, "AUC": {"num_thresholds": 5}}


def number(value):
    return float("%.7g" % float(tf.reduce_mean(tf.cast(value, "float64"))))


def inputs(seeds, name, shape):
    """y_true and y_pred of the manifest."""
    y_pred = seeds.uniform(shape, *PROBABILITIES)
    if name == "Accuracy":
        return seeds.labels(shape, 2), seeds.labels(shape, 2)
    if name.startswith("Sparse"):
        return seeds.labels(shape[:-1], shape[-1]), y_pred
    if name in ("Hinge", "BinaryAccuracy", "Precision", "Recall", "TruePositives", "AUC", "F1Score", "BinaryCrossentropy"):
        return seeds.labels(shape, 2), y_pred
    return seeds.uniform(shape, *PROBABILITIES), y_pred


def run(seeds):
    for kind, names, library in (("loss", LOSSES, keras.losses), ("metric", METRICS, keras.metrics)):
        for name in names:
            for shape in ([N], [N, C], [N, T, C]):
                if len(shape) == 1 and (kind == "loss" or name not in ELEMENTWISE):
                    continue
                y_true, y_pred = inputs(seeds, name, shape)
                results = []
                for weights in [None] + WEIGHTS:
                    if weights is not None and len(weights) > len(shape):
                        continue
                    w = seeds.uniform(weights, 0.125, 2.0) if weights is not None else None
                    weight = make(w) if w is not None else None
                    try:
                        function = getattr(library, name)(**OPTIONS.get(name, {}))
                        if kind == "loss":
                            result = function(make(y_true), make(y_pred), sample_weight=weight)
                        else:
                            if name in ("Mean", "Sum"):
                                function.update_state(make(y_pred), sample_weight=weight)
                                function.update_state(make(y_pred)[:2], sample_weight=None)
                            else:
                                function.update_state(make(y_true), make(y_pred), sample_weight=weight)
                            result = function.result()
                    except Exception:
                        continue
                    results.append({"weights": w, "result": number(result)})
                yield {"kind": kind, "name": name, "options": OPTIONS.get(name), "y_true": y_true, "y_pred": y_pred, "results": results}


def main():
    seeds = Seeds(204)
    seeds.last = 12000
    write_entries("sample_weights", list(run(seeds)))


if __name__ == "__main__":
    main()
