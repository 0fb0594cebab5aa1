"""Losses and metrics of Keras that golden/generate.py does not train with: writes measures.lua and measures_of_labels.lua.
Run with Keras and TensorFlow installed:
    python spec/golden/measures.py
A loss: values per sample, the mean, and the gradient of the prediction. A metric: the result after each of two updates, the second one with
weights. Inputs follow the formula of generate.py."""
import keras
import numpy as np
import tensorflow as tf

from generate import Seeds, make, write_entries

PROBABILITIES, NUMBERS, COUNTS = (0.02, 0.98), (-2.0, 2.0), (0.1, 3.0)
LOSSES = [
    ("KLDivergence", {}, PROBABILITIES, PROBABILITIES), ("Poisson", {}, COUNTS, COUNTS), ("LogCosh", {}, NUMBERS, NUMBERS),
    ("LogCosh", {}, (-90.0, 90.0), NUMBERS), ("CosineSimilarity", {}, NUMBERS, NUMBERS),
    ("CosineSimilarity", {"axis": -1}, NUMBERS, NUMBERS),
    ("Hinge", {}, "labels", NUMBERS), ("SquaredHinge", {}, "labels", NUMBERS), ("Hinge", {}, "signs", NUMBERS),
    ("CategoricalHinge", {}, "one_hot", NUMBERS), ("Dice", {}, PROBABILITIES, PROBABILITIES),
    ("Dice", {"axis": [-1]}, PROBABILITIES, PROBABILITIES), ("Dice", {"reduction": "sum", "axis": [-2]}, "labels", PROBABILITIES),
    ("Tversky", {}, PROBABILITIES, PROBABILITIES), ("Tversky", {"alpha": 0.3, "beta": 0.8, "axis": [-1]}, "labels", PROBABILITIES),
    ("BinaryFocalCrossentropy", {}, "labels", PROBABILITIES),
    ("BinaryFocalCrossentropy", {"apply_class_balancing": True, "gamma": 1.5, "label_smoothing": 0.1}, "labels", PROBABILITIES),
    ("BinaryFocalCrossentropy", {"from_logits": True, "alpha": 0.6, "apply_class_balancing": True}, "labels", NUMBERS),
    ("CategoricalFocalCrossentropy", {}, "one_hot", PROBABILITIES),
    ("CategoricalFocalCrossentropy", {"from_logits": True, "gamma": 3.0, "alpha": 0.5, "label_smoothing": 0.2}, "one_hot", NUMBERS),
    ("CategoricalGeneralizedCrossEntropy", {"q": 0.7}, "classes", PROBABILITIES),
    ("MeanAbsolutePercentageError", {}, COUNTS, NUMBERS), ("MeanSquaredLogarithmicError", {}, COUNTS, COUNTS),
]
# Losses that compare sequences or samples of a batch, with the shape of the predictions.
BATCH_LOSSES = [
    ("CTC", {}, "sequences", (-3.0, 3.0), [4, 9, 6]), ("CTC", {"reduction": "sum"}, "sequences", (-3.0, 3.0), [3, 12, 4]),
    ("Circle", {"gamma": 8.0}, "classes", (-0.5, 0.5), [9, 3]),
    ("Circle", {"gamma": 5.0, "margin": 0.25, "reduction": "sum"}, "classes", (-0.5, 0.5), [8, 2]),
    ("Circle", {"remove_diagonal": False}, "classes", (-0.5, 0.5), [7, 4]),
    ("Circle", {"gamma": 10.0, "margin": 0.1, "reduction": "none"}, "classes", (-0.6, 0.6), [6, 5]),
]
# Losses along other axes than the last, and those that leave a class out, with the shape of the predictions.
AXES = [
    ("CategoricalCrossentropy", {"axis": 1}, PROBABILITIES, PROBABILITIES, [3, 4, 2]),
    ("CategoricalCrossentropy", {"axis": 0, "from_logits": True}, "one_hot", NUMBERS, [4, 6]),
    ("CategoricalCrossentropy", {"axis": -2, "label_smoothing": 0.2}, PROBABILITIES, PROBABILITIES, [3, 4, 2]),
    ("CategoricalCrossentropy", {"axis": 0, "label_smoothing": 0.2, "from_logits": True}, "one_hot", NUMBERS, [4, 4]),
    ("CategoricalCrossentropy", {"axis": 0, "reduction": "sum"}, PROBABILITIES, PROBABILITIES, [4, 3]),
    ("BinaryCrossentropy", {"axis": 1}, "labels", PROBABILITIES, [3, 4, 2]),
    ("BinaryCrossentropy", {"axis": -3, "from_logits": True, "label_smoothing": 0.1}, "labels", NUMBERS, [2, 3, 2, 2]),
    ("BinaryFocalCrossentropy", {"axis": 1, "apply_class_balancing": True}, "labels", PROBABILITIES, [3, 4, 2]),
    ("CategoricalFocalCrossentropy", {"axis": 1, "label_smoothing": 0.1}, PROBABILITIES, PROBABILITIES, [3, 4, 2]),
    ("CategoricalFocalCrossentropy", {"axis": -2, "from_logits": True, "gamma": 1.5}, PROBABILITIES, NUMBERS, [2, 2, 3, 2]),
    ("CosineSimilarity", {"axis": 1}, NUMBERS, NUMBERS, [3, 4, 2]), ("CosineSimilarity", {"axis": -3}, NUMBERS, NUMBERS, [2, 3, 2, 2]),
    ("CosineSimilarity", {"axis": 0, "reduction": "none"}, NUMBERS, NUMBERS, [4, 3]),
    ("SparseCategoricalCrossentropy", {"axis": 1}, "classes", PROBABILITIES, [3, 4, 5]),
    ("SparseCategoricalCrossentropy", {"axis": -3, "from_logits": True}, "classes", NUMBERS, [2, 3, 2, 3]),
    ("SparseCategoricalCrossentropy", {"axis": 1, "ignore_class": 2}, "classes", PROBABILITIES, [3, 4, 5]),
    ("SparseCategoricalCrossentropy", {"ignore_class": 0, "from_logits": True}, "classes", NUMBERS, [3, 2, 4]),
]
BY_NAME = [("crossentropy", [12, 1], "labels"), ("ce", [12, 4], "one_hot"), ("crossentropy", [12, 4], "classes")]
BINARY, ROWS, LABELED = ("labels", [12, 1]), ("one_hot", [12, 6]), ("labels", [12, 3])
METRICS = [
    ("Precision", {}, BINARY), ("Precision", {"thresholds": 0.3}, BINARY), ("Precision", {"thresholds": [0.2, 0.5, 0.8]}, BINARY),
    ("Precision", {"class_id": 2}, ROWS), ("Recall", {}, BINARY), ("Recall", {"class_id": 0, "thresholds": 0.4}, ROWS),
    ("Recall", {}, ROWS),
    ("TruePositives", {}, BINARY), ("TrueNegatives", {"thresholds": [0.1, 0.6]}, BINARY), ("FalsePositives", {}, BINARY),
    ("FalseNegatives", {}, ROWS), ("AUC", {}, BINARY), ("AUC", {"curve": "PR"}, BINARY), ("AUC", {"num_thresholds": 7}, BINARY),
    ("AUC", {"curve": "PR", "summation_method": "minoring"}, BINARY), ("AUC", {"summation_method": "majoring", "num_thresholds": 12}, ROWS),
    ("AUC", {"thresholds": [0.25, 0.5, 0.9]}, BINARY),
    ("TopKCategoricalAccuracy", {"k": 2}, ROWS), ("TopKCategoricalAccuracy", {}, ROWS),
    ("SparseTopKCategoricalAccuracy", {"k": 3}, ("classes", [12, 6])), ("CosineSimilarity", {}, ROWS),
    ("RootMeanSquaredError", {}, BINARY), ("KLDivergence", {}, ROWS), ("Poisson", {}, ROWS),
    ("Hinge", {}, BINARY), ("CategoricalHinge", {}, ROWS),
    ("F1Score", {}, ROWS), ("F1Score", {"average": "macro", "threshold": 0.5}, ROWS), ("F1Score", {"average": "micro"}, ROWS),
    ("FBetaScore", {"average": "weighted", "beta": 2.0}, ROWS), ("FBetaScore", {"beta": 0.5, "threshold": 0.3}, ("labels", [12, 3])),
    ("LogCoshError", {}, BINARY), ("LogCoshError", {}, ROWS),
]
# In a separate file, measures_of_labels.lua.
LABEL_METRICS = [
    ("Precision", {"top_k": 2}, ROWS), ("Recall", {"top_k": 3}, ROWS), ("Recall", {"top_k": 2, "class_id": 1}, ROWS),
    ("Precision", {"top_k": 2, "thresholds": [0.3, 0.7]}, LABELED),
    ("AUC", {"multi_label": True}, LABELED), ("AUC", {"multi_label": True, "num_labels": 3, "curve": "PR", "num_thresholds": 20}, LABELED),
    ("AUC", {"multi_label": True, "label_weights": [0.5, 2.0, 1.0], "summation_method": "minoring"}, LABELED),
    ("AUC", {"label_weights": [0.5, 2.0, 1.0], "num_thresholds": 10}, LABELED), ("AUC", {"curve": "PRGAIN"}, BINARY),
    ("AUC", {"curve": "prgain", "summation_method": "Minoring", "num_thresholds": 9, "multi_label": True}, LABELED),
    ("AUC", {"multi_label": True, "thresholds": [0.2, 0.6], "curve": "PR", "summation_method": "majoring"}, LABELED),
]

# Metrics of which the predictions are labels, too, or the weights have their own shape: kinds and shapes of both, that of the weights.
# "null": options that are None.
LABELS, MAPS = (("classes", [12, 5]),) * 2, (("classes", [3, 4, 2, 5]),) * 2
ONE_HOT, SCORES = (("one_hot", [12, 4]), ((0.0, 1.0), [12, 4])), (("labels", [12]), ((0.0, 1.0), [12]))
OUTPUTS = (((-2.0, 2.0), [12, 3]),) * 2
PICTURES, SHARES = (((-2.0, 2.0), [2, 3, 5, 4]),) * 2, ((PROBABILITIES, [2, 3, 5, 4]),) * 2
WEIGHTED = [
    ("IoU", {"num_classes": 5, "target_class_ids": [0, 2]}, LABELS, [12]),
    ("IoU", {"num_classes": 4, "target_class_ids": [1, 3, 3], "dtype": "float32"}, LABELS, [12]),
    ("IoU", {"num_classes": 4, "target_class_ids": [0], "sparse_y_pred": False}, (("classes", [12, 4]), ((0.0, 1.0), [12, 4])), [12]),
    ("MeanIoU", {"num_classes": 5, "ignore_class": 1}, MAPS, [3, 4, 2]),
    ("MeanIoU", {"num_classes": 7, "dtype": "float32"}, MAPS, [3, 4, 2]),
    ("MeanIoU", {"num_classes": 4, "sparse_y_true": False, "sparse_y_pred": False, "ignore_class": 0}, ONE_HOT, [12]),
    ("BinaryIoU", {}, SCORES, [12]), ("BinaryIoU", {"target_class_ids": [1], "threshold": 0.3, "dtype": "float32"}, SCORES, [12]),
    ("OneHotIoU", {"num_classes": 4, "target_class_ids": [0, 3]}, ONE_HOT, [12]),
    ("OneHotMeanIoU", {"num_classes": 4, "dtype": "float32"}, ONE_HOT, [12]),
    ("OneHotMeanIoU", {"num_classes": 5, "sparse_y_pred": True}, (("one_hot", [12, 5]), ("classes", [12, 5])), [12]),
    ("R2Score", {}, OUTPUTS, [12]), ("R2Score", {"class_aggregation": "variance_weighted_average"}, OUTPUTS, [12, 3]),
    ("R2Score", {"num_regressors": 2, "null": ["class_aggregation"]}, OUTPUTS, [12, 1]),
    ("R2Score", {"num_regressors": 5}, (((-2.0, 2.0), [12, 1]), ((-2.0, 2.0), [12])), [12]),
    ("SensitivityAtSpecificity", {"specificity": 0.6}, SCORES, [12]),
    ("SensitivityAtSpecificity", {"specificity": 0.3, "num_thresholds": 7, "class_id": 2}, ONE_HOT, [12]),
    ("SpecificityAtSensitivity", {"sensitivity": 0.4}, SCORES, [12]),
    ("SpecificityAtSensitivity", {"sensitivity": 0.2, "num_thresholds": 1}, (("labels", [12, 1]), ((-0.5, 1.5), [12, 1])), [12]),
    ("PrecisionAtRecall", {"recall": 0.5}, SCORES, [12]), ("PrecisionAtRecall", {"recall": 0.3, "num_thresholds": 12}, ONE_HOT, [12]),
    ("RecallAtPrecision", {"precision": 0.4}, SCORES, [12]), ("RecallAtPrecision", {"precision": 0.9, "num_thresholds": 3}, SCORES, [12]),
    ("PearsonCorrelation", {}, OUTPUTS, [12]), ("ConcordanceCorrelation", {}, OUTPUTS, [12]),
    ("PearsonCorrelation", {"axis": 0}, OUTPUTS, [3]), ("ConcordanceCorrelation", {"axis": -2}, (((-2.0, 2.0), [2, 5, 3]),) * 2, [2, 3]),
]
# In measures_of_labels.lua, too.
OF_PICTURES = [
    ("CosineSimilarity", {"axis": 1}, PICTURES, [2, 5]), ("CategoricalCrossentropy", {"axis": 1}, SHARES, [2]),
    ("CategoricalCrossentropy", {"axis": -3, "label_smoothing": 0.1}, SHARES, [2, 5, 4]), ("BinaryCrossentropy", {}, SHARES, [2]),
    ("CategoricalAccuracy", {}, SHARES, [2, 3]), ("TopKCategoricalAccuracy", {"k": 2}, SHARES, [2, 3]), ("BinaryAccuracy", {}, SHARES, [2]),
    ("SparseTopKCategoricalAccuracy", {"k": 2, "from_sorted_ids": True}, (("classes", [3, 4, 6]), ("classes", [3, 4, 3, 6])), [3]),
    ("SparseCategoricalCrossentropy", {"ignore_class": 2}, (("classes", [3, 4, 5]), (PROBABILITIES, [3, 4, 5])), [3, 4]),
    ("MeanIoU", {"num_classes": 3, "sparse_y_true": False, "sparse_y_pred": False}, (((0.0, 1.0), [2, 5, 4, 3]),) * 2, [2, 5, 4]),
    ("OneHotIoU", {"num_classes": 4, "target_class_ids": [1, 2], "axis": -1, "ignore_class": 3}, SHARES, [2, 3, 5]),
]


def number(value):
    array = keras.ops.convert_to_numpy(value)
    return [number(entry) for entry in array] if array.ndim else float("%.7g" % float(array))


def target(seeds, kind, shape):
    """The tensor of the manifest, and what is made of it."""
    if kind == "one_hot":
        entry = seeds.one_hot(shape)
    elif kind == "classes":
        entry = seeds.labels(shape[:-1], shape[-1])
    elif kind == "sequences":      # labels from 1, one more in each row, then 0
        entry = seeds.labels([shape[0], 4], shape[2] - 1)
        return entry, np.tril(np.ones(entry["shape"], np.int32)) * (make(entry) + 1)
    elif kind in ("labels", "signs"):
        entry = seeds.labels(shape, 2)
    else:
        entry = seeds.uniform(shape, *kind)
    return entry, make(entry) * 2.0 - 1.0 if kind == "signs" else make(entry)


def run_losses(seeds):
    cases = [(getattr(keras.losses, name)(**options), [5, 4], truth, span, {"loss": name, "options": options})
             for name, options, truth, span in LOSSES]
    yield from run_cases(seeds, cases + by_name_cases())


def run_batch_losses(seeds):
    yield from run_cases(seeds, [(getattr(keras.losses, name)(**options), shape, truth, span,
                                  {"loss": name, "options": options, "truth": truth})
                                 for name, options, truth, span, shape in BATCH_LOSSES])


class AlongLast:
    """A sparse loss, for which TensorFlow has no other axis than the last one, of predictions that are turned."""
    def __init__(self, name, axis, options):
        self.loss, self.axis = getattr(keras.losses, name)(**options), axis

    def __call__(self, y_true, y_pred):
        return self.loss(y_true, keras.ops.moveaxis(tf.convert_to_tensor(y_pred), self.axis, -1))

    def call(self, y_true, y_pred):
        return self.loss.call(y_true, keras.ops.moveaxis(tf.convert_to_tensor(y_pred), self.axis, -1))


def run_axes(seeds):
    for name, options, truth, span, shape in AXES:
        axis, rest = options.get("axis", -1), {key: value for key, value in options.items() if key != "axis"}
        labels = list(shape)
        if truth in ("classes", "one_hot"):
            labels.append(labels.pop(axis))
        sparse = truth == "classes" and axis != -1
        loss = AlongLast(name, axis, rest) if sparse else getattr(keras.losses, name)(**options)
        case = {"loss": name, "options": {**options, "axis": axis + 1 if axis >= 0 else axis}}
        case |= {"turned": axis} if truth == "one_hot" and axis != -1 else {}
        yield from run_cases(seeds, [(loss, shape, truth, span, case)], labels)


def by_name_cases():
    return [(name, shape, truth, PROBABILITIES, {"loss": name, "by_name": True}) for name, shape, truth in BY_NAME]


def run_cases(seeds, cases, labels=None):
    for loss, shape, truth, span, case in cases:
        y_true, y = target(seeds, truth, labels or shape)
        y = np.moveaxis(y, -1, case["turned"]) if "turned" in case else y
        y_pred = seeds.uniform(shape, *span)
        prediction = tf.Variable(make(y_pred))
        if "by_name" in case:
            model = keras.Sequential([keras.layers.Input(shape[1:]), keras.layers.Activation("linear")])
            model.compile(optimizer="sgd", loss=loss)
            logs = model.test_on_batch(prediction, y, return_dict=True)
            yield {**case, "y_true": y_true, "y_pred": y_pred, "mean": number(logs["loss"])}
            continue
        with tf.GradientTape() as tape:
            mean = tf.reduce_mean(loss(y, prediction))
        yield {**case, "signs": truth == "signs", "y_true": y_true, "y_pred": y_pred,
               "values": number(loss.call(tf.constant(y), prediction)), "mean": number(mean),
               "gradient": number(tf.reshape(tape.gradient(mean, prediction), [-1]))}


def run_metrics(seeds, metrics):
    for name, options, (kind, shape) in metrics:
        metric, updates, results = getattr(keras.metrics, name)(**options), [], []
        for weighted in (False, True):
            y_true, y = target(seeds, kind, shape)
            y_pred, weights = seeds.uniform(shape, 0.0, 1.0), seeds.uniform(shape[:1], 0.0, 2.0)
            metric.update_state(y, make(y_pred), sample_weight=make(weights) if weighted else None)
            updates.append({"y_true": y_true, "y_pred": y_pred} | ({"weights": weights} if weighted else {}))
            results.append(number(metric.result()))
        yield {"metric": name, "options": options, "updates": updates, "results": results}


def run_weighted(seeds, metrics):
    for name, options, ((true_kind, true_shape), (pred_kind, pred_shape)), weights_shape in metrics:
        options = dict(options)
        null = options.pop("null", [])
        metric, updates, results = getattr(keras.metrics, name)(**options, **{key: None for key in null}), [], []
        for weighted in (False, True):
            (y_true, y), (y_pred, p) = target(seeds, true_kind, true_shape), target(seeds, pred_kind, pred_shape)
            weights = seeds.uniform(weights_shape, 0.0, 3.0)
            metric.update_state(y, p, sample_weight=make(weights) if weighted else None)
            updates.append({"y_true": y_true, "y_pred": y_pred} | ({"weights": weights} if weighted else {}))
            results.append(number(metric.result()))
        if options.get("axis", -1) >= 0:
            options["axis"] += 1
        yield {"metric": name, "options": options, "null": null, "updates": updates, "results": results}


def main():
    seeds = Seeds(9000)
    entries = list(run_losses(seeds)) + list(run_metrics(seeds, METRICS))
    write_entries("measures", entries + list(run_weighted(Seeds(87000), WEIGHTED)) + list(run_batch_losses(Seeds(88000))))
    others = list(run_metrics(Seeds(89000), LABEL_METRICS)) + list(run_axes(Seeds(90000))) + list(run_weighted(Seeds(91000), OF_PICTURES))
    write_entries("measures_of_labels", others, script="measures")


if __name__ == "__main__":
    main()
