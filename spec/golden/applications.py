"""keras.applications as Keras writes them, at full width and narrow.

    python3 -m venv /tmp/keras && /tmp/keras/bin/pip install keras jax h5py
    KERAS_BACKEND=jax /tmp/keras/bin/python spec/golden/applications.py make           writes applications.npz
    KERAS_BACKEND=jax /tmp/keras/bin/python spec/golden/applications.py check [NAME]   every family at its full width: flowlua opens what
                                                                                       Keras saved, in Lua and in C, and predicts the same

`make` keeps the config.json of each family with an eighth of the filters (Keras itself builds the narrow model from it) and what Keras
predicts with weights by the formula of spec/support/golden.lua. Two families hold classes of their own and are not there:
InceptionResNetV2 (CustomScaleLayer) and ConvNeXt (LayerScale, StochasticDepth).
"""
import json
import os
import subprocess
import sys
import tempfile
import zlib

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("KERAS_BACKEND", "jax")
import keras
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
CLASSES = 5
BOUND = 1e-5      # of the largest value

# The smallest input that the architecture takes, and arguments.
FAMILIES = {
    "Xception": (71, {}), "VGG16": (32, {}), "VGG19": (32, {}), "ResNet50": (32, {}), "ResNet101": (32, {}), "ResNet152": (32, {}),
    "ResNet50V2": (32, {}), "ResNet101V2": (32, {}), "ResNet152V2": (32, {}), "InceptionV3": (75, {}),
    "MobileNet": (32, {}), "MobileNetV2": (32, {}), "MobileNetV3Small": (32, {}), "MobileNetV3Large": (32, {}),
    "DenseNet121": (32, {}), "DenseNet169": (32, {}), "DenseNet201": (32, {}), "NASNetMobile": (32, {}), "NASNetLarge": (32, {}),
    "EfficientNetB0": (32, {}), "EfficientNetB1": (32, {}), "EfficientNetB7": (32, {}),
    "EfficientNetV2B0": (32, {}), "EfficientNetV2B1": (32, {}), "EfficientNetV2S": (32, {}),
}
# Families whose activations shrink from layer to layer get larger weights, so that predictions depend on the image.
GAINS = {"MobileNet": 6, "MobileNetV2": 4, "MobileNetV3": 6, "EfficientNet": 6}


def gain_of(name):
    return max((gain for family, gain in GAINS.items() if name.startswith(family)), default=2)


# What the committed test holds; `make` takes any of the families.
COMMITTED = ["MobileNetV3Small"]
DIVISOR = 8


def unit(count, seed):
    """Doubles in [0, 1): see each_unit in spec/support/golden.lua."""
    state = (np.uint64(seed * 668265263 % 2**32) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(2654435761)) % np.uint64(2**32)
    x = state.astype(np.uint32)
    x ^= x << np.uint32(13)
    x ^= x >> np.uint32(17)
    x ^= x << np.uint32(5)
    return x.astype(np.float64) / 4294967296


def value_of(name, shape, gain):
    """A variable's values by its name, "conv2d_1/kernel", and shape."""
    u = unit(int(np.prod(shape)), zlib.crc32(name.encode())) * 2 - 1
    suffix = name.rsplit("/", 1)[1]
    if "kernel" in suffix:
        depthwise = suffix == "depthwise_kernel" or len(shape) == 4 and shape[3] == 1
        fan_in = np.prod(shape[:2] if depthwise else shape[:-1])
        u = u * np.sqrt(3 * gain / fan_in)
    elif suffix == "gamma":
        u = 1 + 0.2 * u
    elif suffix in ("moving_variance", "variance"):
        u = 1 + 0.5 * u
    else:
        u = 0.1 * u
    return u.reshape(shape).astype("float32")


def scramble(model, gain):
    for variable in model.variables:
        if variable.dtype == "float32":
            variable.assign(value_of("/".join(variable.path.split("/")[-2:]), tuple(variable.shape), gain))
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
        if key in ("filters", "units") and entry % divisor == 0:
            entry = entry // divisor
        elif key == "target_shape" and entry[:2] == [1, 1] and entry[2] > 0 and entry[2] % divisor == 0:
            entry = [1, 1, entry[2] // divisor]
        result[key] = narrow(entry, divisor)
    return result


def build(name):
    size, options = FAMILIES[name]
    keras.utils.clear_session()
    return getattr(keras.applications, name)(weights=None, input_shape=(size, size, 3), classes=CLASSES, classifier_activation=None,
                                             **options)


def images(name):
    size = FAMILIES[name][0]
    image = unit(size * size * 3, 1).reshape(1, size, size, 3) * 255
    return np.concatenate([image, 255 - image]).astype("float32")


def predict(model, x):
    return np.asarray(model(x, training=False))


def make():
    arrays = {}
    for name in COMMITTED:
        entry = json.loads(build(name).to_json())
        entry.pop("build_config", None)
        for layer in entry["config"]["layers"]:
            layer.pop("build_config", None)
        entry = narrow(entry, DIVISOR)
        model = keras.models.model_from_json(json.dumps(entry))
        scramble(model, gain_of(name))
        text = config_text(model)
        arrays[name + "_config"] = np.frombuffer(text.encode(), "uint8")
        arrays[name + "_y"] = predict(model, images(name))
        y = arrays[name + "_y"]
        largest, differ = np.abs(y).max(), np.abs(y[0] - y[1]).max()
        print(f"{name}: {model.count_params()} parameters, predictions up to {largest:.3g}, images differ by {differ / largest:.3g}",
              flush=True)
    path = os.path.join(HERE, "applications.npz")
    np.savez_compressed(path, **arrays)
    print(f"{path}: {os.path.getsize(path)} bytes")


def config_text(model):
    """config.json of the file that Keras saves."""
    import zipfile
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.keras")
        model.save(path)
        with zipfile.ZipFile(path) as archive:
            return archive.read("config.json").decode()


READER = """
local flow = require "flow"
local files = require "spec.support.model_files"
local path, x, y = arg[1], flow.load_npy(arg[2]), flow.load_npy(arg[3])
local largest = y:abs():max():item()
local function compare(how, found)
  print(("%s %.3g"):format(how, (found - y):abs():max():item() / largest))
end
compare("lua", flow.load_model(path):predict(x, { verbose = 0 }))
local model = flow.load_model(path)
model:save(path .. ".again.keras")
compare("saved", flow.load_model(path .. ".again.keras"):predict(x, { verbose = 0 }))
compare("c", files.predict_in_c(path, { x })[1])
"""


def check(names):
    root = os.path.dirname(os.path.dirname(HERE))
    program = os.environ.get("FLOWLUA_PROGRAM", os.path.join(root, "build/bin/flowlua"))
    failed = 0
    for name in names or FAMILIES:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.keras")
            model = build(name)
            scramble(model, gain_of(name))
            x = images(name)
            y = predict(model, x)
            model.save(path)
            parameters = model.count_params()
            del model
            np.save(os.path.join(folder, "x.npy"), x)
            np.save(os.path.join(folder, "y.npy"), y)
            with open(os.path.join(folder, "read.lua"), "w") as file:
                file.write(READER)
            done = subprocess.run([program, file.name, path, os.path.join(folder, "x.npy"), os.path.join(folder, "y.npy")],
                                  cwd=root, capture_output=True, text=True)
            lines = done.stdout.split("\n")[:-1]
            errors = [float(line.split()[1]) for line in lines]
            good = done.returncode == 0 and len(errors) == 3 and max(errors) <= BOUND
            failed += not good
            print(f"{'ok  ' if good else 'FAIL'} {name}, {parameters} parameters: {', '.join(lines)} {done.stderr.strip()[:400]}",
                  flush=True)
    print(f"{len(names or FAMILIES) - failed} of {len(names or FAMILIES)} families agree with Keras {keras.__version__}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    make() if sys.argv[1] == "make" else check(sys.argv[2:])
