"""names.py: the public names of Keras, which spec/golden/names_spec.lua looks for below flow.keras.

    python spec/golden/names.py                                       writes spec/golden/names.lua
    flowlua spec/golden/names_spec.lua                                prints the table: how many of them flow has, and which it lacks
"""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"
import keras

MODULES = ["ops", "ops.image", "ops.linalg", "ops.nn", "ops.numpy", "random", "losses", "metrics", "optimizers", "optimizers.schedules",
           "initializers", "regularizers", "constraints", "activations", "callbacks", "layers", "applications", "backend", "config",
           "distribution", "dtype_policies", "models", "preprocessing", "preprocessing.image", "preprocessing.sequence", "saving", "tree",
           "utils", "visualization", "quantizers", "export"]
HERE = os.path.dirname(os.path.abspath(__file__))


def public_names(path):
    module = keras
    for part in path.split("."):
        module = getattr(module, part)
    return [name for name in sorted(dir(module)) if not name.startswith("_") and callable(getattr(module, name))]


def main():
    lines = [f"-- names.lua: the public functions and classes of the modules of Keras {keras.__version__}. Made by names.py.", "return {"]
    for path in MODULES:
        lines.append(f'  ["{path}"] = [[')
        line = "   "
        for name in public_names(path):
            if len(line) + 1 + len(name) > 138:
                lines.append(line)
                line = "   "
            line += " " + name
        lines += [line, "  ]],"]
    with open(os.path.join(HERE, "names.lua"), "w") as file:
        file.write("\n".join(lines + ["}", ""]))


main()
