"""keras.applications as Keras writes them, at full width and narrow.

    python3 -m venv /tmp/keras && /tmp/keras/bin/pip install tensorflow-cpu
    /tmp/keras/bin/python spec/golden/applications.py make               writes applications.npz
    /tmp/keras/bin/python spec/golden/applications.py check [NAME ...]   every family at its full width: flowlua opens what Keras saved, in
                                                                         Lua and in C, and predicts the same
    SIZE=224 /tmp/keras/bin/python spec/golden/applications.py check     the same with images of 224 x 224
    TOP=0 /tmp/keras/bin/python spec/golden/applications.py check        the same with include_top=False, whose pictures may have any size:
                                                                         predictions at two sizes

`make` keeps narrow members: Keras builds them from its own config.json with a part of the filters, saves them, and the bytes of the file
go into the archive, which packs them. `check` also lets Keras compute in float64, so that what rounding does to float32 can be told from
faults. Two families hold their own classes and are not there: InceptionResNetV2 (CustomScaleLayer) and ConvNeXt (LayerScale,
StochasticDepth).
"""
import gc
import json
import os
import subprocess
import sys
import tempfile
import zlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"     # see generate.py
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["KERAS_BACKEND"] = "tensorflow"
import keras
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
CLASSES = 5
BOUND = 1e-5      # of the largest value

# The smallest input that the architecture takes. `check` takes larger images: of the smallest ones a single pixel reaches the end, and
# rounding counts as much there as it ever does.
FAMILIES = {
    "Xception": 71, "VGG16": 32, "VGG19": 32, "ResNet50": 32, "ResNet101": 32, "ResNet152": 32, "ResNet50V2": 32, "ResNet101V2": 32,
    "ResNet152V2": 32, "InceptionV3": 75, "MobileNet": 32, "MobileNetV2": 32, "MobileNetV3Small": 32, "MobileNetV3Large": 32,
    "DenseNet121": 32, "DenseNet169": 32, "DenseNet201": 32, "NASNetMobile": 32, "NASNetLarge": 32,
    **{"EfficientNet" + kind: 32 for kind in ["B0", "B1", "B2", "B3", "B4", "B5", "B6", "B7"]},
    **{"EfficientNetV2" + kind: 32 for kind in ["B0", "B1", "B2", "B3", "S", "M", "L"]},
}
SIZE = int(os.environ.get("SIZE", 96))
TOP = os.environ.get("TOP") != "0"
# What the committed test holds, and by what its filters are divided; `make` takes any of the families.
COMMITTED = {"MobileNet": 16, "MobileNetV2": 16, "MobileNetV3Small": 8, "EfficientNetB0": 16, "EfficientNetV2B0": 16, "DenseNet121": 16,
             "NASNetMobile": 11, "Xception": 32, "ResNet50V2": 32, "InceptionV3": 32, "VGG16": 32}
# With include_top=False and pictures of any size.
WITHOUT_TOP = {"MobileNetV2": 32, "ResNet50": 64, "EfficientNetB0": 32, "DenseNet121": 32, "VGG16": 64, "Xception": 64, "InceptionV3": 64}


def random_of(name):
    return np.random.default_rng(zlib.crc32(name.encode()))


def value_of(path, shape):
    """Random values of a variable: kernels that keep the size of what passes through them, all others near their initial values."""
    u = random_of(path).uniform(-1, 1, shape)
    suffix = path.rsplit("/", 1)[1]
    if "kernel" in suffix:
        depthwise = suffix == "depthwise_kernel" or len(shape) == 4 and shape[3] == 1
        return u * np.sqrt(6 / np.prod(shape[:2] if depthwise else shape[:-1]))
    if suffix in ("moving_variance", "variance"):
        return 1 + 0.5 * u
    return (suffix in ("gamma", "beta")) + 0.1 * u


def scramble(model, x):
    """Random weights, and the moving statistics that training on x would leave: with others activations grow or die out from layer to
    layer, and rounding is all that arrives at the end."""
    for variable in model.variables:
        if variable.dtype.startswith("float"):
            variable.assign(value_of("/".join(variable.path.split("/")[-2:]), tuple(variable.shape)))
    finish(model)
    normalizations = [layer for layer in model.layers if isinstance(layer, keras.layers.BatchNormalization)]
    momenta = [layer.momentum for layer in normalizations]
    for layer in normalizations:
        layer.momentum = 0.0
    model(x.astype(keras.config.floatx()), training=True)
    for layer, momentum in zip(normalizations, momenta):
        layer.momentum = momentum


def finish(model):
    for layer in model.layers:
        if isinstance(layer, keras.layers.Normalization):
            layer.finalize_state()


def narrow(value, divisor):
    """The config with a part of all filters, and of the sizes that follow from them."""
    if isinstance(value, list):
        return [narrow(entry, divisor) for entry in value]
    if not isinstance(value, dict):
        return value
    result = {}
    for key, entry in value.items():
        if key in ("filters", "units") and entry >= divisor:
            entry = entry // divisor
        elif key == "target_shape" and entry[:2] == [1, 1] and entry[2] >= divisor:
            entry = [1, 1, entry[2] // divisor]
        result[key] = narrow(entry, divisor)
    return result


def build(name, size, top):
    keras.utils.clear_session()
    make = getattr(keras.applications, name)
    if top:
        return make(weights=None, input_shape=(size, size, 3), classes=CLASSES, classifier_activation=None)
    return make(weights=None, input_shape=(None, None, 3), include_top=False)


def images(name, count, size):
    return random_of(name).integers(0, 256, (count, size, size, 3)).astype("float32")


def wider(x):
    """Pictures of another size: with their first 13 columns once more on the right."""
    return np.concatenate([x, x[:, :, :13]], axis=2)


def predict(model, x):
    return np.asarray(model(x, training=False))


# ---- narrow members ---------------------------------------------------------------------------------------------------

def round_weights(model):
    """To steps that leave six bits of each number, for the files to be small."""
    for variable in model.variables:
        if variable.dtype == "float32":
            value = np.asarray(variable)
            step = 2.0 ** np.ceil(np.log2(max(np.abs(value).max(), 1e-6)) - 5)
            variable.assign(np.maximum(np.round(value / step), 1) * step if "variance" in variable.path else np.round(value / step) * step)
    finish(model)


def narrow_member(name, divisor, top):
    entry = json.loads(build(name, FAMILIES[name], top).to_json())
    entry.pop("build_config", None)
    for layer in entry["config"]["layers"]:
        layer.pop("build_config", None)
    model = keras.models.model_from_json(json.dumps(narrow(entry, divisor)))
    scramble(model, images("calibration", 16, FAMILIES[name]))
    round_weights(model)
    return model


def make():
    arrays = {}
    for name, divisor in COMMITTED.items():
        model, x = narrow_member(name, divisor, True), images("images", 2, FAMILIES[name])
        y = predict(model, x)
        arrays[name] = saved(model)
        arrays[name + "_y"] = y
        arrays[f"images_{FAMILIES[name]}"] = x.astype("uint8")
        print(f"{name}: {model.count_params()} parameters, predictions up to {np.abs(y).max():.3g}, images differ by "
              f"{np.abs(y[0] - y[1]).max() / np.abs(y).max():.3g}", flush=True)
    for name, divisor in WITHOUT_TOP.items():
        model, x = narrow_member(name, divisor, False), images("images", 2, FAMILIES[name])
        arrays[name + "_any"] = saved(model)
        for size, pictures in [("y", x), ("wide", wider(x))]:
            arrays[f"{name}_any_{size}"] = y = predict(model, pictures)
            print(f"{name} without top: {model.count_params()} parameters, {pictures.shape} gives {y.shape}", flush=True)
    path = os.path.join(HERE, "applications.npz")
    np.savez_compressed(path, **arrays)
    print(f"{path}: {os.path.getsize(path)} bytes")


def saved(model):
    """The bytes of the file that Keras saves."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.keras")
        model.save(path)
        return np.fromfile(path, "uint8")


# ---- all of them at full width ----------------------------------------------------------------------------------------

READER = """
local flow = require "flow"
local files = require "spec.support.model_files"
local path, xs = arg[1], {}
for i = 2, #arg do xs[i - 1] = flow.load_npy(arg[i]) end
local function keep(reader, predict)
  for i, x in ipairs(xs) do flow.save_npy(("%s.%s%d.npy"):format(path, reader, i), predict(x)) end
end
local model = flow.load_model(path)
keep("lua", function(x) return model:predict(x, { verbose = 0 }) end)
model:save(path .. ".again.keras")
model:close()
local again = flow.load_model(path .. ".again.keras")
keep("saved", function(x) return again:predict(x, { verbose = 0 }) end)
keep("c", function(x) return files.predict_in_c(path, { x })[1] end)
"""
READERS = ["lua", "saved", "c"]


def in_float64(name, size, weights, xs):
    """What the model predicts when Keras computes in float64."""
    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    try:
        model = build(name, size, TOP)
        model.set_weights(weights)
        finish(model)
        return [predict(model, x.astype("float64")) for x in xs]
    finally:
        keras.config.set_floatx("float32")
        keras.config.set_dtype_policy("float32")


def check_one(name, folder):
    root = os.path.dirname(os.path.dirname(HERE))
    program = os.environ.get("FLOWLUA_PROGRAM", os.path.join(root, "build/bin/flowlua"))
    size = max(SIZE, FAMILIES[name])
    path, script = os.path.join(folder, "m.keras"), os.path.join(folder, "read.lua")
    model = build(name, size, TOP)
    scramble(model, images("calibration", 16 if size < 64 else 4, size))
    xs = [images("images", 2, size)]
    if not TOP:
        xs.append(wider(xs[0]))
    ys, weights, parameters = [predict(model, x) for x in xs], model.get_weights(), model.count_params()
    model.save(path)
    del model
    truths = in_float64(name, size, weights, xs)
    del weights
    gc.collect()
    inputs = [os.path.join(folder, f"x{i}.npy") for i in range(len(xs))]
    for x, file in zip(xs, inputs):
        np.save(file, x)
    with open(script, "w") as file:
        file.write(READER)
    done = subprocess.run([program, script, path, *inputs], cwd=root, capture_output=True, text=True)

    def error(a, b):
        return max(np.abs(one - other).max() / np.abs(truth).max() for one, other, truth in zip(a, b, truths))

    def of(reader):
        files = [f"{path}.{reader}{i + 1}.npy" for i in range(len(xs))]
        return [np.load(file) for file in files] if all(map(os.path.exists, files)) else None

    found = {reader: of(reader) for reader in READERS if of(reader)}
    good = done.returncode == 0 and len(found) == len(READERS) and all(error(z, ys) <= BOUND for z in found.values())
    table = " ".join(f"{error(found[reader], ys):8.1e}" if reader in found else "    none" for reader in READERS)
    if "lua" in found:
        table += f" {error(found['lua'], truths):8.1e}"
    print(f"{'ok  ' if good else 'FAIL'} {name:17} {parameters:10} {size:4} {table} {error(ys, truths):8.1e} "
          f"{np.abs(truths[0][0] - truths[0][1]).max() / np.abs(truths[0]).max():5.2f} {done.stderr.strip()[:400]}", flush=True)
    return good


def check(names):
    failed = 0
    print("differences of predictions, of the largest value: Lua's, those of what Lua saves again and C's from Keras'; Lua's and Keras' "
          "from those in float64; and of the two images")
    print(f"     {'family':17} {'parameters':>10} size      lua    saved        c   lua-64 keras-64 images")
    for name in names or FAMILIES:
        with tempfile.TemporaryDirectory() as folder:
            failed += not check_one(name, folder)
    print(f"{len(names or FAMILIES) - failed} of {len(names or FAMILIES)} families agree with Keras {keras.__version__}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    make() if sys.argv[1] == "make" else check(sys.argv[2:])
