"""Model files that Keras wrote, for keras_files_spec.lua to load, and files of flowlua for Keras to load.

    python3 -m venv /tmp/keras && /tmp/keras/bin/pip install tensorflow-cpu
    /tmp/keras/bin/python spec/golden/keras_files.py make      writes keras/*.keras and keras/expected.npz
    /tmp/keras/bin/python spec/golden/keras_files.py check     runs keras_files.lua and compares what Keras makes of its files
    /tmp/keras/bin/python spec/golden/keras_files.py random 500     the same for models of spec/support/random_files.lua, any number of
                                                               them; what Keras writes for a model must be what flowlua wrote.
                                                               With KERAS_BACKEND=jax: TensorFlow refuses some names and options
    /tmp/keras/bin/python spec/golden/keras_files.py random 501-1000        those after them
    /tmp/keras/bin/python spec/golden/keras_files.py random 500 unknown     the same for models with unknown sizes, at two sizes

The four files that `make` finds there (flowers_small, mnist_small_compiled, func, dense_adam_trained_jax) were written by Keras 3.13.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile
import zipfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "keras")
layers = keras.layers
random = np.random.RandomState(7)


def scramble(model):
    """Values that are not initial ones: moving averages that have moved, biases that are not zero."""
    for variable in model.variables:
        value = random.normal(0.1, 0.3, variable.shape)
        if "variance" in variable.path:
            value = np.abs(value) + 0.5
        if variable.dtype.startswith("float"):
            variable.assign(value.astype("float32"))


def image_model():
    return keras.Sequential([
        layers.Input((12, 10, 3)), layers.Rescaling(0.5, offset=-0.25), layers.RandomFlip("horizontal"), layers.RandomRotation(0.1),
        layers.RandomZoom(0.1), layers.RandomContrast(0.2), layers.Conv2D(5, 3, padding="same", activation="relu", name="first"),
        layers.BatchNormalization(), layers.ReLU(max_value=6.0), layers.DepthwiseConv2D(3, depth_multiplier=2), layers.Activation("gelu"),
        layers.AveragePooling2D(2, padding="same"), layers.Conv2D(4, (2, 1), strides=1, use_bias=False, kernel_initializer="he_normal"),
        layers.MaxPooling2D((1, 2)), layers.Flatten(), layers.Dropout(0.5, seed=3), layers.Dense(4), layers.Softmax()], name="images")


def nested_model():
    left, right = keras.Input((6,), name="left"), keras.Input((6,), name="right")
    tower = keras.Sequential([layers.Input((6,)), layers.Dense(5, activation="tanh"), layers.BatchNormalization(axis=1)], name="tower")
    inner_input = keras.Input((5,))
    inner = keras.Model(inner_input, layers.Add()([inner_input, layers.Dense(5, activation="sigmoid")(inner_input)]), name="inner")
    a, b = inner(tower(left)), tower(right)
    joined = layers.Concatenate()([a, b, a])
    arithmetic = keras.ops.exp(-(joined * 2.0 + 1.0)) / 3.0
    return keras.Model([left, right], [layers.Dense(3, name="scores")(arithmetic), layers.Dense(1)(b)], name="nested")


def towers_model():
    """Nested models that are called more than once, several inputs and outputs, no arithmetic."""
    left, right = keras.Input((6,), name="left"), keras.Input((6,), name="right")
    tower = keras.Sequential([layers.Input((6,)), layers.Dense(5, activation="tanh"), layers.LayerNormalization()], name="tower")
    inner_input = keras.Input((5,))
    inner_sum = layers.Add()([inner_input, layers.Dense(5, activation="sigmoid")(inner_input)])
    inner = keras.Model(inner_input, [inner_sum, layers.Dense(2)(inner_sum)], name="inner")
    (a, b), (c, d) = inner(tower(left)), inner(tower(right))
    joined = layers.Concatenate()([a, layers.Subtract()([c, a]), b])
    return keras.Model([right, left], [layers.Dense(3, name="scores")(joined), d], name="towers")


def operations_model():
    """Operations of keras.ops with options, lists, constants and parts."""
    ops = keras.ops
    left, right = keras.Input((4,), name="left"), keras.Input((4,), name="right")
    joined = ops.concatenate([left, right], axis=-1)
    cube = ops.reshape(joined, (-1, 2, 4))
    product = ops.transpose(ops.matmul(cube, np.arange(12, dtype="float32").reshape(4, 3) / 8), (0, 2, 1))
    stacked = ops.stack([product, product * 2.0], axis=1)
    summed = ops.expand_dims(ops.gelu(ops.sum(stacked, axis=-1, keepdims=True)), 1)
    probabilities = ops.softmax(ops.clip(ops.squeeze(summed, 1), -1.0, 2.0), axis=-2)
    part = probabilities[:, 0, 1:3]
    chosen = ops.where(part > 0.3, part, 0.25)
    first, second = ops.split(joined, 2, axis=1)
    padded = ops.pad(ops.tile(first, [1, 2]), [[0, 0], [1, 2]], constant_values=2.0)
    return keras.Model([left, right], [
        probabilities, ops.mean(probabilities, axis=[1, 2]), ops.max(chosen, axis=1), padded, ops.flip(second, axis=1),
        ops.take(joined, [1, 2, -1], axis=1), ops.repeat(second, 2, axis=1), ops.swapaxes(cube, 1, 2), ops.log_softmax(joined),
        ops.unstack(cube, axis=1)[1], ops.gelu(joined, approximate=False), ops.leaky_relu(second), ops.var(cube, axis=-1)
    ], name="operations")


def adapted_model():
    normalization = layers.Normalization()
    normalization.adapt(random.normal(3, 2, (50, 4)).astype("float32"))
    return keras.Sequential([layers.Input((4,)), normalization, layers.Dense(2)])


MODELS = {"images": image_model, "nested": nested_model, "adapted": adapted_model, "towers": towers_model}
WITHOUT_WEIGHTS = {"operations": operations_model}

OPTIMIZERS = {
    "adam": lambda: keras.optimizers.Adam(0.01), "amsgrad": lambda: keras.optimizers.Adam(0.01, amsgrad=True),
    "momentum": lambda: keras.optimizers.SGD(0.05, momentum=0.9, nesterov=True),
    "rmsprop": lambda: keras.optimizers.RMSprop(0.01, momentum=0.5), "adamw": lambda: keras.optimizers.AdamW(0.01),
    "regularized": lambda: keras.optimizers.SGD(0.1),
    "decay": lambda: keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.01, 4, 0.5)),
    "ftrl": lambda: keras.optimizers.Ftrl(0.05, l1_regularization_strength=0.001), "lamb": lambda: keras.optimizers.Lamb(0.01),
    "adafactor": lambda: keras.optimizers.Adafactor(0.02), "muon": lambda: keras.optimizers.Muon(0.02, rms_rate=None),
    # With TensorFlow it takes the momentum after the step for the one before it: make and check its files with KERAS_BACKEND=jax.
    "schedule_free": lambda: keras.optimizers.ScheduleFreeAdamW(0.02, warmup_steps=3),
}
SAMPLES = ["flowers_small", "mnist_small_compiled", "func", "dense_adam_trained_jax"]


def inputs_of(model, rows=3):
    return [random.uniform(-1, 1, (rows,) + tuple(x.shape[1:])).astype("float32") for x in model.inputs]


def add_prediction(expected, name, model):
    xs = inputs_of(model)
    ys = model.predict(xs if len(xs) > 1 else xs[0], verbose=0)
    for i, x in enumerate(xs):
        expected[f"{name}_x{i + 1}"] = x
    for i, y in enumerate(ys if isinstance(ys, list) else [ys]):
        expected[f"{name}_y{i + 1}"] = y


def trained(name, optimizer, expected):
    """Five steps, saved, and the losses of five more."""
    keras.utils.set_random_seed(3)
    regularizer = keras.regularizers.L1L2(l1=0.01, l2=0.02) if name == "regularized" else None
    model = keras.Sequential([layers.Input((6,)), layers.Dense(8, activation="relu", kernel_regularizer=regularizer,
                                                               bias_regularizer="l2" if regularizer else None),
                              layers.BatchNormalization(momentum=0.8),
                              layers.Dense(3)])
    model.compile(optimizer=optimizer, loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    xs, ys = random.uniform(-1, 1, (10, 16, 6)).astype("float32"), random.randint(0, 3, (10, 16)).astype("int32")
    losses = []
    for step in range(10):
        losses.append(model.train_on_batch(xs[step], ys[step], return_dict=True)["loss"])
        if step < 9:
            model.reset_metrics()
        if step == 4:
            model.save(os.path.join(FOLDER, f"trained_{name}.keras"))
    expected.update({f"trained_{name}_x": xs[5:], f"trained_{name}_y": ys[5:], f"trained_{name}_loss": np.array(losses[5:], "float32")})


def make():
    expected = {}
    for name, build in MODELS.items():
        model = build()
        if name != "adapted":
            scramble(model)
        model.save(os.path.join(FOLDER, name + ".keras"))
        model.save_weights(os.path.join(FOLDER, name + ".weights.h5"))
        add_prediction(expected, name, model)
    for name, build in WITHOUT_WEIGHTS.items():
        model = build()
        model.save(os.path.join(FOLDER, name + ".keras"))
        add_prediction(expected, name, model)
    for name in SAMPLES:
        add_prediction(expected, name, keras.models.load_model(os.path.join(FOLDER, name + ".keras")))
    for name, optimizer in OPTIMIZERS.items():
        trained(name, optimizer(), expected)
    np.savez(os.path.join(FOLDER, "expected.npz"), **expected)


def largest(values):
    """NaN if one is, which max() of Python may pass over."""
    return float(np.max(list(values)))


def difference(model, xs, ys):
    """The largest difference between what the model predicts and ys, relative to the largest value."""
    if not xs:
        return 0.0
    found = keras.tree.flatten(model.predict(xs if len(xs) > 1 else xs[0], verbose=0))
    return largest(np.max(np.abs(a - b)) / max(1e-30, np.max(np.abs(b))) for a, b in zip(found, ys))


def check():
    """Each file of flowlua with its inputs and predictions, NAME.keras, NAME_x1.npy ..., NAME_y1.npy ...; and its next losses."""
    root = os.path.dirname(os.path.dirname(HERE))
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        program = os.environ.get("FLOWLUA_PROGRAM", os.path.join(root, "build/bin/flowlua"))
        subprocess.run([program, os.path.join(HERE, "keras_files.lua"), folder], check=True, cwd=root)
        paths = sorted(glob.glob(os.path.join(folder, "*.keras")))
        for path in paths:
            name = path[:-len(".keras")]
            try:
                model = keras.models.load_model(path)
            except Exception as problem:
                failed += 1
                print(f"FAIL {os.path.basename(path)}: {str(problem).splitlines()[-1]}")
                continue
            read = lambda kind: [np.load(f) for f in sorted(glob.glob(f"{name}_{kind}[0-9].npy"))]
            xs, ys = read("x"), read("y")
            worst = difference(model, xs, ys)
            if xs:
                for variable in model.variables:
                    variable.assign(np.ones(variable.shape))
                model.load_weights(name + ".weights.h5")
                worst = largest([worst, difference(model, xs, ys)])
            if os.path.exists(name + "_steps_x.npy"):
                steps = zip(np.load(name + "_steps_x.npy"), np.load(name + "_steps_y.npy"), np.load(name + "_steps_loss.npy"))
                for x, y, loss in steps:
                    model.reset_metrics()
                    worst = largest([worst, abs(model.train_on_batch(x, y, return_dict=True)["loss"] - float(loss))])
            good = worst <= 1e-5
            failed += not good
            print(f"{'ok  ' if good else 'FAIL'} {os.path.basename(path)}: largest difference {worst:.2g}")
    print(f"{len(paths) - failed} of {len(paths)} files agree with Keras {keras.__version__}")
    sys.exit(failed > 0 or not paths)


# What Keras does not write, or makes up for each process.
NOT_COMPARED = {"shared_object_id", "build_config", "compile_config", "build_input_shape", "registered_name", "module",
                "own_training"}      # the last one is ours
# What Keras adds with its default when it reads a config without it, or finds when it builds the layer: axes, a seed.
DEFAULTS = {"data_format", "training", "attention_axes", "seed"}
# What Keras reads, but does not write.
NOT_WRITTEN = {"RandomGrayscale": "seed", "MaxNumBoundingBoxes": "fill_value", "SimpleRNN": "activity_regularizer"}
# Where Keras' layers fail, or tell another shape than they give, whoever wrote the file: what the problem says.
FAULTS_OF_KERAS = {
    "RMSNormalization": "Incompatible shapes for broadcasting",      # with several axes
    "Equalization": "is part of a cycle",                            # called on the inputs of two models
    "HashedCrossing": "dtype=int64",                                 # which JAX does not have
    "StackedRNNCells": "the carry output has the same pytree structure",
    "EinsumDense": ".config.shape[",                                 # infers shapes with the axes of an ellipsis reversed
    "IntegerLookup": ".config.trainable", "StringLookup": ".config.trainable",      # forgets that it was given as False
    "RandomCrop": ".config.shape[",                                  # tells the size of training, and gives pictures as they are
}


def same(ours, theirs):
    """Keras rounds options of regularizers to float32, names a policy by its name here and there, and writes a factor f as [0, f]
    or [-f, f]."""
    if isinstance(ours, dict) and ours.get("class_name") == "DTypePolicy":
        return ours["config"]["name"] == theirs
    if isinstance(ours, (int, float)) and isinstance(theirs, list):
        return theirs in ([0, ours], [-ours, ours])
    if isinstance(ours, (int, float)) and isinstance(theirs, (int, float)) and type(ours) is not bool:
        return abs(ours - theirs) <= 1e-6 * abs(ours)
    return ours == theirs


def differences(ours, theirs, path=""):
    """Where two configs differ: numbers by value, members of which one is missing and the other null count as equal."""
    found = []
    if isinstance(ours, dict) and isinstance(theirs, dict):
        left_out = NOT_WRITTEN.get(ours.get("class_name"))
        if left_out and isinstance(ours.get("config"), dict):
            ours = dict(ours, config={key: value for key, value in ours["config"].items() if key != left_out})
        if ours.get("class_name") == "GroupNormalization" and ours["config"]["groups"] == -1:      # Keras writes how many those are
            theirs["config"]["groups"] = -1
        for key in sorted(set(ours) | set(theirs)):
            frozen = key == "trainable" and "layers" in ours      # Keras forgets it of a Sequential model
            if key not in NOT_COMPARED and not frozen and not (key in DEFAULTS and ours.get(key) is None):
                found += differences(ours.get(key), theirs.get(key), f"{path}.{key}")
        return found
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return [line for i, (a, b) in enumerate(zip(ours, theirs)) for line in differences(a, b, f"{path}[{i}]")]
    return [] if same(ours, theirs) else [f"{path}: {ours} here, {theirs} in Keras"]


def check_random(count, *options):
    """Random models of flowlua: Keras opens them, predicts the same, and writes the same config.json, with the same shapes."""
    root = os.path.dirname(os.path.dirname(HERE))
    known = 0
    failed, (first, last) = 0, count.split("-") if "-" in count else (1, count)
    seeds = range(int(first), int(last) + 1)
    with tempfile.TemporaryDirectory() as folder:
        program = os.environ.get("FLOWLUA_PROGRAM", os.path.join(root, "build/bin/flowlua"))
        subprocess.run([program, os.path.join(HERE, "random_files.lua"), folder, count, *options], check=True, cwd=root)
        for seed in seeds:
            name = os.path.join(folder, str(seed))
            with open(name + ".txt") as file:
                layer = file.read()
            what = f"seed {seed} ({layer})"
            try:
                keras.utils.clear_session()
                model = keras.models.load_model(name + ".keras")
                read = lambda kind: [np.load(f) for f in sorted(glob.glob(f"{name}_{kind}[0-9].npy"))]
                sizes = [size for size in range(1, 3 if options else 2) if read(f"{size}_x")]
                worst = largest([0, *(difference(model, read(f"{size}_x"), read(f"{size}_y")) for size in sizes)])
                problems = [] if worst <= 1e-5 else [f"largest difference {worst:.2g}"]
                model.save(name + "_keras.keras")
                problems += differences(config_of(name + ".keras"), config_of(name + "_keras.keras"))
            except Exception as problem:
                problems = [str(problem).replace("\n", " ")]
            left = [problem for problem in problems if FAULTS_OF_KERAS.get(layer, "\n") not in problem]
            known += len(left) == 0 and len(problems) > 0
            problems = left
            failed += bool(problems)
            for problem in problems[:3]:
                print(f"FAIL {what}: {problem[-300:]}", flush=True)
    print(f"{len(seeds) - failed - known} of {len(seeds)} random models agree with Keras {keras.__version__}, {known} meet faults of Keras")
    sys.exit(failed > 0)


def config_of(path):
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("config.json"))


if __name__ == "__main__":
    {"make": make, "check": check, "random": lambda: check_random(*sys.argv[2:])}[sys.argv[1]]()
