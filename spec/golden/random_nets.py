"""Random models of several layers (spec/support/random_nets.lua), compared with Keras both ways:

    /tmp/keras/bin/python spec/golden/random_nets.py 1-100 [FOLDER]          with KERAS_BACKEND=torch or jax: beside these
    /tmp/keras/bin/python spec/golden/random_nets.py table LOG...            the table of several such runs

flowlua makes a model, predicts, and trains five steps; Keras opens its file and does the same, in float32 and in float64, and writes what
it has trained; flowlua opens that, predicts and trains five steps more, as Keras does. Predictions must agree within 1e-4 of the largest
value, losses of the steps and predictions after them within 1e-3. Where they do not, Keras' float64 is asked: if its own float32 is as
far from it, float32 does not settle the model. What still differs is tried with Keras' other backends. A line for each seed says which of
these it is (random_verdicts.py), the table at the end how many of each there are. The status is 1 if one differs. What Keras cannot run
is not drawn where that can be known before. Files of those that do not agree remain in FOLDER.
"""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile

from keras_files import config_of, differences      # sets up the environment; must come before Keras
import keras
import numpy as np
import random_verdicts

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PROGRAM = os.environ.get("FLOWLUA_PROGRAM", os.path.join(ROOT, "build/bin/flowlua"))
PREDICTED, TRAINED, STEPS, CHUNK = 1e-4, 1e-3, 5, 50


def numbered(stem):
    found = []
    while os.path.exists(f"{stem}{len(found) + 1}.npy"):
        found.append(np.load(f"{stem}{len(found) + 1}.npy"))
    return found


def inputs_of(stem, model):
    import tensorflow as tf
    found = []
    for i in range(1, len(model.inputs) + 1):
        if os.path.exists(f"{stem}_s{i}.txt"):
            with open(f"{stem}_s{i}.txt") as file:
                lines = file.read().split("\n")[:-1]
            found.append(tf.reshape(tf.constant(lines[1:]), [int(n) for n in lines[0].split()]))
        else:
            found.append(np.load(f"{stem}_x{i}.npy"))
    if any(not isinstance(x, np.ndarray) for x in found):       # Keras refuses tensors beside arrays
        found = [tf.convert_to_tensor(x) for x in found]
    return found


# What Keras says of tensors that it gives otherwise: RandomCrop has the size of training, and gives pictures as they are; TextVectorization
# of {rows, 1} gives {rows, length}; EinsumDense has the axes of "..." in the reverse order, or one of them twice; Dropout
# and merges of whole numbers are said to be floats (base_merge.py, compute_output_spec). Lookups forget that they were given
# trainable = False (index_lookup.py).
SAID_WRONGLY = {"RandomCrop": r"\.config\.shape", "TextVectorization": r"\.config\.shape", "EinsumDense": r"\.config\.shape\[",
                **{name: r"\.config\.dtype: int\d+ here, float32 in Keras" for name in
                   ("Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum", "Concatenate")},
                "Dropout": r"\.config\.dtype: int\d+ here, float32 in Keras",
                **{name: r"\.config\.trainable: False here, True in Keras" for name in ("IntegerLookup", "StringLookup")}}


def settled(problems, classes):
    """Without what is not counted: Keras' shapes that know less than ours, and inputs that Keras renames when it copies a graph."""
    said = [pattern for name, pattern in SAID_WRONGLY.items() if name in classes]
    return [p[:300] for p in problems if not (" here, None in Keras" in p and ".config.shape" in p) and "CLONE" not in p
            and not any(re.search(pattern, p) for pattern in said)]


def without_masks(part):
    """Keras writes the mask that a model inside is called with as operations, and a mask of None that comes out of it; ours are made when
    the model is called."""
    if isinstance(part, list):
        is_mask = lambda value: isinstance(value, dict) and value.get("class_name") in ("NotEqual", "Any", "LogicalOr", "ConvertToTensor")
        return [without_masks(value) for value in part if not is_mask(value)]
    if isinstance(part, dict):
        is_model = part.get("class_name") in ("Functional", "Sequential")
        nodes = part.get("inbound_nodes") if is_model else None
        part = {key: without_masks(value) for key, value in part.items() if not (key == "mask" and value is None)}
        for node in nodes and part["inbound_nodes"] or []:
            node["kwargs"].pop("mask", None)
        return part
    return part


def in_float64(path):
    """The same model with float64 in place of float32."""
    def changed(part):
        if isinstance(part, dict):
            return {key: changed(value) for key, value in part.items()}
        if isinstance(part, list):
            return [changed(value) for value in part]
        return "float64" if part == "float32" else part

    def without_metrics(config):
        if config.get("compile_config"):
            config["compile_config"]["metrics"] = None      # TensorFlow has some of them in float32 only
        return config
    made = path.replace(".keras", "_float64.keras")
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(made, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            target.writestr(name, json.dumps(without_metrics(changed(json.loads(data)))) if name == "config.json" else data)
    return made


def predictions(model, xs):
    found = model(xs if len(xs) > 1 else xs[0], training=False)
    return [keras.ops.convert_to_numpy(y) for y in keras.tree.flatten(found)]


def steps(model, xs, ts):
    model.run_eagerly, model.jit_compile = True, False
    losses = []
    for _ in range(STEPS):
        model.reset_metrics()
        losses.append(float(model.train_on_batch(xs if len(xs) > 1 else xs[0], ts if len(ts) > 1 else ts[0], return_dict=True)["loss"]))
    return np.array(losses)


def apart(found, expected):
    """The largest difference relative to the largest value; of whole numbers, how many differ."""
    if len(found) != len(expected):
        return float("inf")
    worst = 0.0
    for a, b in zip(found, expected):
        if a.shape != b.shape:
            return float("inf")
        a, b = a.astype("float64"), b.astype("float64")
        if a.size and not np.array_equal(a, b, equal_nan=True):
            worst = max(worst, float(np.nan_to_num(np.max(np.abs(a - b)) / max(1e-6, np.max(np.abs(b))), nan=np.inf)))
    return worst


def losses_apart(found, expected):
    unbounded = ~np.isfinite(found) & ~np.isfinite(expected)
    relative = np.where(unbounded, 0, np.abs(found - expected) / np.maximum(0.1, np.abs(expected)))
    return float(np.max(np.nan_to_num(relative, nan=np.inf)))


# Layers made of layers: in Keras trainable = False given to their constructor, as files do, freezes none of those; set afterwards it does.
MADE_OF_LAYERS = (keras.layers.MultiHeadAttention, keras.layers.GroupQueryAttention, keras.layers.ConvLSTM1D, keras.layers.ConvLSTM2D,
                  keras.layers.ConvLSTM3D)


def loaded(path):
    """The model in a file, where what is not trainable is frozen as a whole."""
    model = keras.models.load_model(path)
    frozen = [layer for layer in model._flatten_layers() if isinstance(layer, MADE_OF_LAYERS) and not layer.trainable]
    if frozen:
        compiled = model.get_compile_config()
        for layer in frozen:
            for part in layer._flatten_layers():        # in TensorFlow's layers setting it reaches no parts
                part.trainable = False
        model.compile_from_config(compiled)
    return model


def whole_gradients(apply):
    """TensorFlow's gradients of embeddings are lists of rows, and Keras squares and clips rows that occur twice one by one; with JAX and
    Torch its gradients are whole."""
    def apply_whole(optimizer, gradients, *rest):
        import tensorflow as tf
        return apply(optimizer, [g if g is None else tf.convert_to_tensor(g) for g in gradients], *rest)
    return apply_whole


if keras.backend.backend() == "tensorflow":
    Optimizer = next(c for c in keras.optimizers.Optimizer.__mro__ if "apply" in vars(c))
    Optimizer.apply = whole_gradients(Optimizer.apply)

MEASURES = {"y": (PREDICTED, apart), "loss": (TRAINED, losses_apart), "z": (TRAINED, apart)}


def is_quantized(stem):
    """Attentions are floats in our files, which Keras quantizes here."""
    with open(stem + ".txt") as file:
        return file.read().endswith(" int8")


def run(stem, path, double=False, written=None):
    keras.utils.clear_session(free_memory=False)
    keras.config.set_floatx("float64" if double else "float32")
    if keras.backend.backend() == "jax":
        import jax
        jax.config.update("jax_enable_x64", double)
    try:
        model = loaded(in_float64(path) if double else path)
        if is_quantized(stem):
            model.quantize("int8", filters=lambda layer: layer.quantization_mode is None)
        xs, ts = inputs_of(stem, model), numbered(stem + "_t")
        xs = [keras.ops.cast(x, "float64") if double and x.dtype in ("float32", np.float32) else x for x in xs]
        result = {"y": predictions(model, xs)}
        if written and not double:
            model.save(written.replace("_keras", "_again"))
        if not os.path.exists(stem + "_loss.npy"):      # training draws random numbers
            if written:
                model.save(written)
            return result
        result["loss"] = steps(model, xs, ts)
        result["z"] = predictions(model, xs)
        if written:
            model.save(written)
            result["more"] = steps(model, xs, ts)
            result["last"] = predictions(model, xs)
        return result
    finally:
        keras.config.set_floatx("float32")


def compare(seed, folder):
    """Lists of problems found by way: what flowlua wrote, and whether float32 settles it."""
    stem = os.path.join(folder, str(seed))
    if os.path.exists(stem + "_error.txt"):
        return None, ["flowlua: " + open(stem + "_error.txt").read()]
    written = stem + "_keras.keras"
    try:
        theirs = run(stem, stem + ".keras", written=written)
    except Exception as problem:
        return None, ["Keras: " + str(problem).replace("\n", " ")[-700:]]
    wrote, again = without_masks(config_of(stem + ".keras")), without_masks(config_of(written.replace("_keras", "_again")))
    problems = [] if is_quantized(stem) else settled(differences(wrote, again), json.dumps(wrote))[:3]
    # OrthogonalRegularizer of one row is such a case: Keras divides 0 by the number of pairs of rows.
    if "loss" in theirs and not np.all(np.isfinite(theirs["loss"])) and np.all(np.isfinite(np.load(stem + "_loss.npy"))):
        problem = "Keras: its loss is NaN or infinite, ours is not"
        before = np.load(stem + "_loss.npy"), np.where(np.isfinite(theirs["loss"]), theirs["loss"], np.load(stem + "_loss.npy"))
        if losses_apart(*before) > TRAINED:
            return None, [f"loss {losses_apart(*before):.2g} before Keras' is NaN or infinite"]
        try:
            exact = run(stem, stem + ".keras", double=True)
        except Exception as problem_there:
            return None, [problem + ", float64: " + str(problem_there)[-200:]]
        if losses_apart(np.load(stem + "_loss.npy"), exact["loss"]) <= TRAINED:
            return None, ["float32 does not settle it: " + problem + "; in float64 it has ours"]
        return None, [f"{problem}: {np.load(stem + '_loss.npy')}, float32 {theirs['loss']}, float64 {exact['loss']}"]
    ours = {"y": numbered(stem + "_y")}
    if "loss" in theirs:
        ours.update(loss=np.load(stem + "_loss.npy"), z=numbered(stem + "_z"))
    for name in ours:
        limit, how = MEASURES[name]
        here = how(ours[name], theirs[name])
        if here > limit:
            problems.append(f"{name} {here:.2g}")
    if not any(problem.split()[0] in ours for problem in problems):
        return theirs, problems
    try:
        exact = run(stem, stem + ".keras", double=True)
        for name in ours:
            limit, how = MEASURES[name]
            here, there = how(ours[name], exact[name]), how(theirs[name], exact[name])
            if here > limit:
                problems.append(f"{name} {here:.2g} from float64, Keras {there:.2g}")
        if any(MEASURES[name][1](theirs[name], exact[name]) > MEASURES[name][0] for name in ours):
            problems = ["float32 does not settle it: " + "; ".join(problems)]
    except Exception as problem:
        print(f"seed {seed} has no float64: {str(problem)[-200:]!r}", file=sys.stderr, flush=True)
    return theirs if not problems or "settle" not in problems[0] else None, problems


def compare_read(seed, folder, theirs):
    stem = os.path.join(folder, str(seed))
    if os.path.exists(stem + "_read_error.txt"):
        return ["reading: " + open(stem + "_read_error.txt").read()]
    problems = []
    trains = "loss" in theirs
    for name, key in (("y", "z"), ("loss", "more"), ("z", "last")) if trains else (("y", "y"),):
        limit, how = MEASURES[name]
        ours = np.load(stem + "_read_loss.npy") if name == "loss" else numbered(stem + "_read_" + name)
        difference = how(ours, theirs[key])
        if difference > limit:
            problems.append(f"read: {name} {difference:.2g}")
    return problems


def try_all(seeds, folder):
    """A line about each of the seeds, as they are done."""
    backend = keras.backend.backend()
    for start in range(0, len(seeds), CHUNK):
        some, results = seeds[start:start + CHUNK], {}
        text = ",".join(map(str, some))
        subprocess.run([PROGRAM, os.path.join(HERE, "random_nets.lua"), "write", folder, text], cwd=ROOT)
        for seed in some:
            results[seed] = compare(seed, folder)
        subprocess.run([PROGRAM, os.path.join(HERE, "random_nets.lua"), "read", folder, text], cwd=ROOT)
        for seed, (theirs, problems) in results.items():
            if theirs:
                problems += compare_read(seed, folder, theirs)
            text, path = (os.path.join(folder, f"{seed}.{ending}") for ending in ("txt", "keras"))
            what = open(text).read() if os.path.exists(text) else ""
            config = json.dumps(config_of(path)) if os.path.exists(path) else ""
            yield random_verdicts.line(seed, backend, what, random_verdicts.verdict(problems, config, backend), problems)
            for path in glob.glob(os.path.join(folder, f"{seed}[._]*")) if not problems else []:
                os.remove(path)


def as_elsewhere(lines, folder):
    """Lines about those that differ here and agree with another backend of Keras."""
    left = {seed: text for (seed, _), (result, text) in random_verdicts.results(lines).items() if result == random_verdicts.DIFFERS}
    for backend in ("tensorflow", "torch", "jax"):
        if left and backend != keras.backend.backend():
            command = [sys.executable, os.path.abspath(__file__), ",".join(map(str, left)), os.path.join(folder, backend), "alone"]
            there = subprocess.run(command, env=dict(os.environ, KERAS_BACKEND=backend), stdout=subprocess.PIPE, text=True)
            for (seed, _), (result, _) in random_verdicts.results(there.stdout.splitlines()).items():
                if result == random_verdicts.AGREES:
                    yield left.pop(seed).replace(f"\t{random_verdicts.DIFFERS}\t", f"\t{random_verdicts.BACKENDS}{backend}\t")


def main(seeds, folder, *options):
    os.makedirs(folder, exist_ok=True)
    first, last = (int(n) for n in seeds.split("-")) if "-" in seeds else (0, 0)
    every = [int(seed) for seed in seeds.split(",")] if "-" not in seeds else list(range(first, last + 1))
    lines = []
    for text in try_all(every, folder):
        lines.append(text)
        print(text, flush=True)
    for text in as_elsewhere(lines, folder) if "alone" not in options else []:
        lines.append(text)
        print(text, flush=True)
    return show(lines)


def show(lines):
    text, fine = random_verdicts.table(lines, keras.__version__)
    print(text)
    return 0 if fine else 1


if __name__ == "__main__":
    if sys.argv[1] == "table":
        sys.exit(show([text for path in sys.argv[2:] for text in open(path)]))
    if len(sys.argv) > 2:
        sys.exit(main(*sys.argv[1:]))
    with tempfile.TemporaryDirectory() as made:
        sys.exit(main(sys.argv[1], made))
