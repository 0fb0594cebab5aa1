"""What Keras makes of keras.applications, for architectures_spec.lua: writes architectures.lua, and legacy.h5, a file of Keras 2's
layout. Run with Keras and TensorFlow installed:

    python spec/golden/architectures.py

Of each member it keeps the number of parameters, the shape of the output and a hash of the layers: name, class and parameters of each, in
Keras' order. `python spec/golden/architectures.py check [NAME ...]` compares predictions at full width instead, with weights that Keras
wrote in both layouts (FLOWLUA_PROGRAM names the program)."""
import os
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"     # see generate.py
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["KERAS_BACKEND"] = "tensorflow"
import h5py
import keras
import numpy as np
from keras.src.legacy.saving import legacy_h5_format

from generate import write_entries

HERE = os.path.dirname(os.path.abspath(__file__))
NAMES = ["VGG16", "VGG19", "ResNet50", "ResNet101", "ResNet152", "ResNet50V2", "ResNet101V2", "ResNet152V2", "DenseNet121", "DenseNet169",
         "DenseNet201", "Xception", "InceptionV3", "MobileNet", "MobileNetV2", "MobileNetV3Small", "MobileNetV3Large", "EfficientNetB0",
         "EfficientNetB1", "EfficientNetB2", "EfficientNetB3", "EfficientNetB4", "EfficientNetB5", "EfficientNetB6", "EfficientNetB7",
         "ConvNeXtTiny", "ConvNeXtSmall", "ConvNeXtBase", "ConvNeXtLarge", "ConvNeXtXLarge"]
# Options beside the defaults; sizes that are odd or unknown decide about margins.
MORE = [("MobileNet", {"alpha": 0.5, "depth_multiplier": 2, "input_shape": [128, 128, 3]}),
        ("MobileNetV2", {"alpha": 1.4, "input_shape": [97, 101, 3], "include_top": False, "pooling": "max"}),
        ("MobileNetV2", {"alpha": 0.35, "input_shape": [160, 160, 3], "classes": 7, "classifier_activation": False}),
        ("MobileNetV3Small", {"minimalistic": True, "alpha": 0.75, "include_top": False, "input_shape": [65, 65, 3]}),
        ("MobileNetV3Large", {"alpha": 1.25, "include_preprocessing": False, "dropout_rate": 0, "classes": 3}),
        ("ResNet50", {"include_top": False, "pooling": "avg", "input_shape": [64, 96, 1]}),
        ("EfficientNetB0", {"include_top": False, "input_shape": [33, 40, 3], "pooling": "avg"}),
        ("EfficientNetB3", {"include_top": False}), ("DenseNet121", {"include_top": False, "input_shape": [65, 65, 3]}),
        ("ConvNeXtTiny", {"include_top": False, "input_shape": [64, 64, 3], "pooling": "avg"}),
        ("ConvNeXtTiny", {"include_preprocessing": False, "classes": 4, "name": "mine"}),
        ("Xception", {"include_top": False, "pooling": "max"}),
        ("InceptionV3", {"include_top": False, "pooling": "avg", "input_shape": [75, 80, 3]}), ("VGG19", {"include_top": False})]
MODULES = {"vgg16": "caffe", "resnet": "caffe", "resnet_v2": "tf", "densenet": "torch", "mobilenet": "tf", "mobilenet_v2": "tf",
           "mobilenet_v3": "none", "efficientnet": "none", "convnext": "none", "inception_v3": "tf", "xception": "tf"}


def build(name, options):
    keras.utils.clear_session()
    given = {key: None if key == "classifier_activation" and value is False else value for key, value in options.items()}
    if "input_shape" in given:
        given["input_shape"] = tuple(given["input_shape"])
    return getattr(keras.applications, name)(weights=None, **given)


def digest(model):
    """A hash that Lua can compute: of the lines "name class parameters"."""
    value = 5381
    for layer in model.layers:
        for byte in ("%s %s %d\n" % (layer.name, type(layer).__name__, layer.count_params())).encode():
            value = (value * 33 + byte) % 2147483647
    return value


def describe():
    for name, options in [(name, {}) for name in NAMES] + MORE:
        model = build(name, options)
        print(name, options, model.count_params(), flush=True)
        yield {"application": name, "options": options, "name": model.name, "parameters": model.count_params(),
               "layers": len(model.layers), "digest": digest(model),
               "output": [-1 if size is None else size for size in model.output_shape]}


def preprocessing():
    x = np.arange(12, dtype="float32").reshape(2, 2, 3) * 21
    for module in MODULES:
        y = getattr(keras.applications, module).preprocess_input(x.copy())
        yield {"module": module, "preprocessed": [float("%.9g" % value) for value in np.asarray(y).reshape(-1)]}


def write_legacy(path, model):
    with h5py.File(path, "w") as file:
        legacy_h5_format.save_weights_to_hdf5_group(file, model)


def small_model():
    inputs = keras.Input((6, 6, 2), name="pictures")
    x = keras.layers.Conv2D(3, 3, name="first")(inputs)
    x = keras.layers.BatchNormalization(name="second")(x)
    inner = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(4, name="inside"), keras.layers.BatchNormalization()],
                             name="inner")
    return keras.Model(inputs, keras.layers.Dense(2, use_bias=False, name="last")(inner(x)))


def make():
    keras.utils.set_random_seed(3)
    model = small_model()
    for variable in model.variables:
        if "seed" not in variable.path:
            variable.assign(np.random.uniform(0.25, 1, variable.shape))
    write_legacy(os.path.join(HERE, "legacy.h5"), model)
    x = np.arange(72, dtype="float32").reshape(1, 6, 6, 2) / 72
    predicted = {"legacy": [float("%.9g" % value) for value in np.asarray(model(x, training=False)).reshape(-1)]}
    write_entries("architectures", [*describe(), *preprocessing(), predicted])


READER = """
local name, top, size, x, folder = arg[1], arg[2] == "1", tonumber(arg[3]), flow.load_npy(arg[4]), arg[5]
for _, ending in ipairs { ".h5", ".weights.h5" } do
  local model = flow.applications[name] { weights = folder .. "/m" .. ending, include_top = top, input_shape = { size, size, 3 } }
  flow.save_npy(folder .. "/y" .. ending .. ".npy", model:predict(x, { verbose = 0 }))
end
"""


def check(names):
    program = os.environ.get("FLOWLUA_PROGRAM", os.path.join(os.path.dirname(os.path.dirname(HERE)), "build/bin/flowlua"))
    failed = 0
    for name in names or NAMES:
        for top in (True, False):
            keras.utils.set_random_seed(5)
            size = 96
            model = build(name, {"input_shape": [size, size, 3], "include_top": top})
            for variable in model.variables:
                if "moving_variance" in variable.path:
                    variable.assign(np.random.uniform(0.5, 1.5, variable.shape))
                elif "moving_mean" in variable.path or "beta" in variable.path:
                    variable.assign(np.random.uniform(-0.1, 0.1, variable.shape))
            with tempfile.TemporaryDirectory() as folder:
                x = np.random.default_rng(1).uniform(0, 255, (2, size, size, 3)).astype("float32")
                np.save(os.path.join(folder, "x.npy"), x)
                write_legacy(os.path.join(folder, "m.h5"), model)
                model.save_weights(os.path.join(folder, "m.weights.h5"))
                with open(os.path.join(folder, "read.lua"), "w") as file:
                    file.write(READER)
                command = [program, os.path.join(folder, "read.lua"), name, str(int(top)), str(size), os.path.join(folder, "x.npy"), folder]
                done = subprocess.run(command, capture_output=True, text=True)
                y, differences = np.asarray(model(x, training=False)), []
                for ending in (".h5", ".weights.h5"):
                    path = os.path.join(folder, "y%s.npy" % ending)
                    if os.path.exists(path):
                        differences.append(float(np.abs(np.load(path) - y).max() / np.abs(y).max()))
            good = len(differences) == 2 and max(differences) <= 1e-5
            failed += not good
            words = ("ok  " if good else "FAIL", name, "top" if top else "no top", model.count_params(), differences, done.stderr[:300])
            print("%s %-17s %-7s %10d parameters, differs by %s of the largest value %s" % words, flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(check(sys.argv[2:]) if sys.argv[1:2] == ["check"] else make())
