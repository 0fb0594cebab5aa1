"""tensorflow_names.py: the public functions and classes of the modules of TensorFlow that scripts use, for tensorflow_names_spec.lua.

    python spec/golden/tensorflow_names.py                            writes spec/golden/tensorflow_names.lua
"""
import inspect
import os
import textwrap

os.environ["TF_CPP_MIN_LOG_LEVEL"], os.environ["CUDA_VISIBLE_DEVICES"] = "3", "-1"
import tensorflow as tf

MODULES = ["", "audio", "data", "data.experimental", "distribute", "image", "io", "linalg", "math", "nn", "random", "signal", "strings",
           "summary", "train"]
HERE = os.path.dirname(os.path.abspath(__file__))


def public_names(module):
    found = [name for name in sorted(dir(module)) if not name.startswith("_")]
    return [name for name in found if callable(getattr(module, name)) and not inspect.ismodule(getattr(module, name))]


def main():
    lines = [f"-- tensorflow_names.lua: functions and classes of TensorFlow {tf.__version__}. Made by tensorflow_names.py.", "return {"]
    for path in MODULES:
        module = tf
        for part in path.split(".") if path else []:
            module = getattr(module, part)
        lines.append(f'  ["{path}"] = [[')
        lines += textwrap.wrap(" ".join(public_names(module)), 136, initial_indent="    ", subsequent_indent="    ")
        lines.append("  ]],")
    with open(os.path.join(HERE, "tensorflow_names.lua"), "w") as file:
        file.write("\n".join(lines + ["}", ""]))


main()
