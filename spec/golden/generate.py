"""Golden values: what Keras computes, for the specs of this folder to compare with.

    python3 -m venv /tmp/keras && /tmp/keras/bin/pip install tensorflow-cpu
    /tmp/keras/bin/python spec/golden/generate.py [FAMILY ...]

writes manifest/FAMILY.lua (what each case is and where its results are) and values/FAMILY.npy (the results, float32 in one row) of
all families, or of some. Each file of layer_cases is a family, layers/NAME; cases.py has the others.
Inputs and weights are not stored: both sides compute them from a formula (`uniform`, spec/support/golden.lua), so that a
case with four million weights costs a line. Everything but the metrics is run in float64, for the truth to be better than
what is measured with it. A training case must also come out nearly the same in float32: else it would measure luck.
"""
import importlib
import json
import os
import sys
import textwrap

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"     # its convolutions round worse than float32 does on some machines
os.environ["KERAS_BACKEND"] = "tensorflow"
import keras
import numpy as np
import tensorflow as tf
from keras.src.applications import convnext

from cases import LOSSES, METRICS, OPTIMIZERS, SCHEDULES, TRAINING
from layer_cases.cached_attention import CachedMultiHeadAttention
from nets import NETS

HERE = os.path.dirname(os.path.abspath(__file__))


# ---- the formula ----------------------------------------------------------------------------------------------------

def unit(count, seed):
    """`count` doubles in [0, 1): a Weyl sequence through one round of xorshift. The same, bit for bit, in spec/support/golden.lua."""
    mask = np.uint64(0xFFFFFFFF)
    x = (np.uint64(seed * 668265263) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(2654435761)) & mask
    x ^= (x << np.uint64(13)) & mask
    x ^= x >> np.uint64(17)
    x ^= (x << np.uint64(5)) & mask
    return x.astype(np.float64) / 4294967296.0


def make(tensor):
    """The array that a tensor of the manifest stands for: rows with a single 1, labels below `classes`, or float32 in [low, high)."""
    if "one_hot" in tensor:
        rows, classes = tensor["shape"]
        return np.eye(classes, dtype=np.float32)[np.floor(unit(rows, tensor["seed"]) * classes).astype(np.int32)]
    u = unit(int(np.prod(tensor["shape"])), tensor["seed"]).reshape(tensor["shape"])
    if "classes" in tensor:
        return np.floor(u * tensor["classes"]).astype(np.int32)
    return (tensor["low"] + u * (tensor["high"] - tensor["low"])).astype(np.float32)


class Seeds:
    """Numbers the tensors of a family, so that no two are alike. Each family counts from its own number: a new case leaves
    the others alone, of which some were chosen for being insensitive to rounding."""
    def __init__(self, first):
        self.last = first

    def uniform(self, shape, low=-1.0, high=1.0):
        self.last += 1
        return {"shape": list(shape), "seed": self.last, "low": low, "high": high}

    def labels(self, shape, classes):
        self.last += 1
        return {"shape": list(shape), "seed": self.last, "classes": classes}

    def one_hot(self, shape):
        self.last += 1
        return {"shape": list(shape), "seed": self.last, "one_hot": True}

    def weight(self, variable):
        """Glorot's limits for kernels; scales, shifts and statistics near their usual values."""
        shape, name = tuple(variable.shape), variable.path.split("/")[-1]
        if name in ("gamma", "moving_variance", "moving_stddev", "renorm_stddev"):
            return self.uniform(shape, 0.5, 1.5)
        if len(shape) < 2:
            return self.uniform(shape, -0.1, 0.1)
        receptive = int(np.prod(shape[:-2]))
        limit = float(np.sqrt(6.0 / ((shape[-2] + shape[-1]) * receptive)))
        return self.uniform(shape, -limit, limit)


# ---- results --------------------------------------------------------------------------------------------------------

class Results:
    """The results of a family of cases, one after the other, and where each is."""
    def __init__(self):
        self.parts, self.offset = [], 0

    def add(self, name, value):
        value = np.asarray(value, dtype=np.float32)
        where = {"name": name, "shape": list(value.shape), "offset": self.offset}
        self.parts.append(value.reshape(-1))
        self.offset += value.size
        return where

    def save(self, name):
        np.save(os.path.join(HERE, "values", name + ".npy"), np.concatenate(self.parts))


def to_lua(value, indent=0):
    """A Python value as a Lua constructor. None entries of a dict are left out."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return "%.17g" % value
    if isinstance(value, str):
        return '"%s"' % value.replace("\\", "\\\\").replace('"', '\\"')
    if isinstance(value, (list, tuple)):
        return "{ " + ", ".join(to_lua(item) for item in value) + " }" if value else "{}"
    fields = ["%s = %s" % (key, to_lua(item)) for key, item in value.items() if item is not None]
    return "{ " + ", ".join(fields) + " }" if fields else "{}"


def write_entries(name, entries, script=None):
    """Writes spec/golden/<name>.lua: a list of the entries, which the script of that name, or of another, has made."""
    with open(os.path.join(HERE, name + ".lua"), "w") as file:
        file.write("-- Generated by spec/golden/%s.py with Keras %s and TensorFlow %s. Do not edit.\n"
                   % (script or name, keras.__version__, tf.__version__))
        file.write("return {\n")
        for entry in entries:
            lines = textwrap.wrap(to_lua(entry), 130, break_long_words=False, break_on_hyphens=False)
            file.write("  %s,\n" % "\n    ".join(lines))
        file.write("}\n")


def to_float64(array):
    return tf.constant(array.astype(np.float64) if array.dtype == np.float32 else array)


# ---- families -------------------------------------------------------------------------------------------------------

def call_layer(layer, call, inputs):
    def tensors(value):
        return [tensors(entry) for entry in value] if isinstance(value, list) else inputs[value]
    return layer(*tensors(call["arguments"]), **{name: tensors(value) for name, value in call["named"].items()}, **call["options"])


def layer_class(name):
    """A layer of Keras by its name; LayerScale is not among the public ones, CachedMultiHeadAttention is KerasHub's."""
    elsewhere = {"LayerScale": convnext.LayerScale, "CachedMultiHeadAttention": CachedMultiHeadAttention}
    return elsewhere.get(name) or getattr(keras.layers, name)


def with_layers(value):
    """Options with a layer in place of each {"class": ..., "options": ...}. merge_mode: False is None, which Lua's tables cannot hold."""
    if isinstance(value, dict) and "class" in value:
        return getattr(keras.layers, value["class"])(**with_layers(value["options"]))
    if isinstance(value, dict):
        return {name: None if name == "merge_mode" and entry is False else with_layers(entry) for name, entry in value.items()}
    return [with_layers(entry) for entry in value] if isinstance(value, list) else value


def lua_call(case):
    """The call with positions from 1; None: one tensor, or one list of all."""
    def positions(value):
        return [positions(entry) for entry in value] if isinstance(value, list) else value + 1
    if "call" not in case:
        return None
    call = case["call"]
    return {"arguments": positions(call["arguments"]), "named": {name: positions(value) for name, value in call["named"].items()},
            "options": call["options"]}


def run_layers(name, cases, seeds):
    """Output, gradients of every input and trainable weight for a random gradient of the output, statistics after the call."""
    results, entries = Results(), []
    for case in cases:
        keras.backend.clear_session()
        keras.config.set_floatx("float32" if case.get("float32") else "float64")     # some gradients of TensorFlow are float32 only
        low, high = case.get("range", (-1.0, 1.0))
        classes = case.get("classes")      # of each input, or of all: indices below it, which have no gradient
        classes = classes if isinstance(classes, list) else [classes] * len(case["inputs"])
        inputs = [keras.Input(tuple(shape[1:]), dtype="int32" if of and "call" in case else None)
                  for shape, of in zip(case["inputs"], classes)]
        layer = layer_class(case["layer"])(**with_layers(case.get("options", {})))
        outputs = call_layer(layer, case["call"], inputs) if "call" in case else layer(inputs if len(inputs) > 1 else inputs[0])
        if "output" in case:
            outputs = keras.tree.flatten(outputs)[case["output"]]
        model = keras.Model(inputs if len(inputs) > 1 else inputs[0], outputs)
        tensors = [seeds.labels(shape, of) if of else seeds.uniform(shape, low, high) for shape, of in zip(case["inputs"], classes)]
        weights = [seeds.weight(variable) for variable in model.weights]
        model.set_weights([make(tensor).astype(np.float64) for tensor in weights])
        convert = tf.constant if case.get("float32") else to_float64
        x = [convert(make(tensor)) for tensor in tensors]
        with tf.GradientTape() as tape:
            for tensor, of in zip(x, classes):
                if not of:
                    tape.watch(tensor)
            y = model(x if len(x) > 1 else x[0], training=case.get("training", False))
        upstream = seeds.uniform(y.shape)
        numbers = [tensor for tensor, of in zip(x, classes) if not of]
        sources = numbers + [variable.value for variable in model.trainable_variables]
        gradients = tape.gradient(y, sources, output_gradients=convert(make(upstream)))
        where = [results.add("output", y)]
        gradients = [tf.zeros_like(source) if g is None else g for source, g in zip(sources, gradients)]
        count = len(numbers)
        if not case.get("gradients", True):
            gradients = []
        where += [results.add("gradient of input %d" % (i + 1), g) for i, g in enumerate(gradients[:count])]
        where += [results.add("gradient of weight %d" % (i + 1), tf.convert_to_tensor(g)) for i, g in enumerate(gradients[count:])]
        if case.get("training"):
            where += [results.add("state %d" % (i + 1), v) for i, v in enumerate(model.non_trainable_variables)]
        entries.append({"name": case["name"], "layer": case["layer"], "options": case.get("options", {}),
                        "training": case.get("training", False), "inputs": tensors, "weights": weights, "upstream": upstream,
                        "results": where, "call": lua_call(case), "output": case["output"] + 1 if "output" in case else None})
    keras.config.set_floatx("float64")
    results.save(name)
    return entries


def run_losses(seeds):
    """The mean loss and its gradient for the predictions."""
    results, entries = Results(), []
    for case in LOSSES:
        shape = case["shape"]
        if case.get("classes"):
            y_true = seeds.labels(shape[:-1], case["classes"])
        elif case["loss"] == "CategoricalCrossentropy":
            y_true = seeds.one_hot(shape)      # TensorFlow's gradient takes for granted that a row sums to 1
        else:
            y_true = seeds.uniform(shape, 0.0, 1.0)
        y_pred = seeds.uniform(shape, *case["range"])
        loss = getattr(keras.losses, case["loss"])(**case.get("options", {}))
        prediction = to_float64(make(y_pred))
        with tf.GradientTape() as tape:
            tape.watch(prediction)
            value = loss(to_float64(make(y_true)), prediction)
        where = [results.add("value", value), results.add("gradient", tape.gradient(value, prediction))]
        entries.append({"name": case["name"], "loss": case["loss"], "options": case.get("options", {}), "y_true": y_true, "y_pred": y_pred,
                        "results": where})
    results.save("losses")
    return entries


def run_metrics(seeds):
    """Loss and metrics of one batch, as test_on_batch reports them for a model that passes its input on."""
    entries = []
    for case in METRICS:
        keras.backend.clear_session()
        shape = case["shape"]
        y_true = seeds.labels(case.get("true_shape", shape[:-1]), case["classes"])
        y_pred = seeds.uniform(shape, *case["range"])
        model = keras.Sequential([keras.Input(tuple(shape[1:])), keras.layers.Activation("linear")])
        model.compile(optimizer="sgd", loss=getattr(keras.losses, case["loss"])(**case.get("options", {})), metrics=list(case["metrics"]))
        expected = model.test_on_batch(make(y_pred), make(y_true), return_dict=True)
        entries.append({"name": case["name"], "loss": case["loss"], "options": case.get("options", {}), "metrics": case["metrics"],
                        "y_true": y_true, "y_pred": y_pred, "expected": {key: float(value) for key, value in sorted(expected.items())}})
    return entries


def run_optimizers(seeds):
    """The variables after the first and after the last step of random gradients."""
    results, entries = Results(), []
    for case in OPTIMIZERS:
        keras.backend.clear_session()
        optimizer = getattr(keras.optimizers, case["optimizer"])(**case["options"] | rate_of(case))
        starts = [seeds.uniform(shape) for shape in case.get("shapes", ([7], [3, 4]))]
        variables = [keras.Variable(make(start).astype(np.float64), dtype="float64") for start in starts]
        if case.get("exclude") is not None:
            optimizer.exclude_from_weight_decay(var_list=[variables[case["exclude"]]])
        steps, where = [], []
        for step in range(case["steps"]):
            gradients = [seeds.uniform(start["shape"]) for start in starts]
            optimizer.apply_gradients([(to_float64(make(g)), v) for g, v in zip(gradients, variables)])
            steps.append(gradients)
            if step in (0, case["steps"] - 1):
                where += [results.add("variable %d after step %d" % (i + 1, step + 1), v) for i, v in enumerate(variables)]
        exclude = case.get("exclude")
        entries.append({"name": case["name"], "optimizer": case["optimizer"], "options": case["options"], "schedule": case.get("schedule"),
                        "exclude": None if exclude is None else exclude + 1, "variables": starts, "steps": steps, "results": where,
                        "iterations": int(optimizer.iterations)})
    results.save("optimizers")
    return entries


def rate_of(case):
    if not case.get("schedule"):
        return {}
    kind, options = case["schedule"]
    return {"learning_rate": getattr(keras.optimizers.schedules, kind)(**options)}


def run_schedules():
    """The rates before the first 50 updates, and the config."""
    entries = []
    for kind, options in SCHEDULES:
        schedule = getattr(keras.optimizers.schedules, kind)(**options)
        rates = [float("%.9g" % float(schedule(tf.constant(step, tf.int64)))) for step in range(50)]
        entries.append({"schedule": kind, "options": options, "rates": rates,
                        "config": json.dumps(keras.optimizers.schedules.serialize(schedule))})
    return entries


def run_optimizer_configs():
    """What Keras writes for an optimizer of each class with nothing but defaults."""
    return [{"optimizer": kind, "config": json.dumps(keras.optimizers.serialize(getattr(keras.optimizers, kind)(name="mine")))}
            for kind in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "Lion", "Nadam", "Ftrl", "Lamb",
                         "Adafactor", "Muon", "ScheduleFreeAdamW")]


def train(case, weights, x, y, floatx):
    """Losses before each step, then the model."""
    keras.config.set_floatx(floatx)
    keras.backend.clear_session()
    model = NETS[case["net"]](case["size"])
    model.set_weights([make(tensor).astype(floatx) for tensor in weights])
    optimizer = getattr(keras.optimizers, case["optimizer"])(**case["options"])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=case["from_logits"])
    model.compile(optimizer=optimizer, loss=loss)
    losses, batch = [], case["batch"]
    for step in range(case["steps"]):
        first = step * batch % len(y)
        with tf.GradientTape() as tape:
            value = loss(y[first:first + batch], model(tf.constant(x[first:first + batch].astype(floatx)), training=True))
        optimizer.apply(tape.gradient(value, [v.value for v in model.trainable_variables]), model.trainable_variables)
        losses.append(float(value))
    return losses, model


def run_training(seeds):
    """Losses of consecutive steps of whole nets; for small nets the prediction (inference mode) and the statistics afterwards, too."""
    results, entries = Results(), []
    for case in TRAINING:
        keras.backend.clear_session()
        model = NETS[case["net"]](case["size"])
        weights = [seeds.weight(variable) for variable in model.weights]
        x = seeds.uniform([case["batch"] * case["batches"]] + list(model.input_shape[1:]), *case["range"])
        y = seeds.labels([case["batch"] * case["batches"]], model.output_shape[-1])
        single, _ = train(case, weights, make(x), make(y), "float32")
        losses, model = train(case, weights, make(x), make(y), "float64")
        gap = float(np.max(np.abs(np.array(losses) - np.array(single))))
        print("  %-24s loss %.4f to %.4f, float32 is within %.1e of float64" % (case["name"], losses[0], losses[-1], gap))
        if gap > 3e-5:
            sys.exit("generate.py: %s depends on rounding; choose a tamer learning rate" % case["name"])
        prediction = model(to_float64(make(x)[:case["batch"]]), training=False)
        where = [results.add("prediction", prediction)]
        where += [results.add("state %d" % (i + 1), v) for i, v in enumerate(model.non_trainable_variables)]
        entries.append({key: case.get(key) for key in ("name", "net", "size", "optimizer", "options", "from_logits", "batch", "steps")}
                       | {"x": x, "y": y, "weights": weights, "losses": [float("%.9g" % value) for value in losses], "results": where})
    results.save("training")
    return entries


# What makes the entries of a family, and the number from which its seeds count.
FAMILIES = {"losses": (run_losses, 204), "optimizers": (run_optimizers, 226), "schedules": (run_schedules, None),
            "optimizer_configs": (run_optimizer_configs, None), "metrics": (run_metrics, 308), "training": (run_training, 314)}


def layer_families():
    """The modules of layer_cases by the name of their family: CASES, and the number FIRST_SEED, of which each has another."""
    names = sorted(name[:-3] for name in os.listdir(os.path.join(HERE, "layer_cases")) if name.endswith(".py"))
    return {"layers/" + name: importlib.import_module("layer_cases." + name) for name in names}


def run(family, layers):
    """The family's entries."""
    keras.config.set_floatx("float32" if family in ("optimizer_configs", "metrics") else "float64")
    if family in layers:
        return run_layers(family, layers[family].CASES, Seeds(layers[family].FIRST_SEED))
    run_family, first_seed = FAMILIES[family]
    return run_family(*[Seeds(first_seed)] if first_seed else [])


def write_manifest(family, entries):
    path = os.path.join(HERE, "manifest", family + ".lua")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write("-- Generated by spec/golden/generate.py with Keras %s and TensorFlow %s. Do not edit.\n"
                   % (keras.__version__, tf.__version__))
        file.write("return {\n")
        for entry in entries:
            file.write("  %s,\n" % to_lua(entry))
        file.write("}\n")


def main():
    layers = layer_families()
    wanted = sys.argv[1:] or [*layers, *FAMILIES]
    unknown = [name for name in wanted if name not in layers and name not in FAMILIES]
    if unknown:
        sys.exit("generate.py: there is no family %s; there are %s" % (", ".join(unknown), ", ".join([*layers, *FAMILIES])))
    os.makedirs(os.path.join(HERE, "values", "layers"), exist_ok=True)
    tf.config.threading.set_intra_op_parallelism_threads(2)
    for family in wanted:
        entries = run(family, layers)
        write_manifest(family, entries)
        print("%d %s" % (len(entries), family))


if __name__ == "__main__":
    main()
