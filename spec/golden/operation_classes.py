"""operation_classes.py: the classes of the operations of keras.ops, by module, which spec/unit/operations_spec.lua compares with those that
files name.

    python spec/golden/operation_classes.py                           writes spec/golden/operation_classes.lua
"""
import importlib
import inspect
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"
import keras
from keras.src.ops.operation import Operation

MODULES = ["core", "image", "linalg", "math", "nn", "numpy"]
HERE = os.path.dirname(os.path.abspath(__file__))


def classes_of(module):
    """Those that are defined there: modules import each other's."""
    found = importlib.import_module(f"keras.src.ops.{module}")
    return sorted(name for name, value in vars(found).items()
                  if inspect.isclass(value) and issubclass(value, Operation) and value.__module__ == found.__name__)


def main():
    lines = [f"-- operation_classes.lua: the classes of keras.src.ops.MODULE of Keras {keras.__version__}. Made by operation_classes.py.",
             "return {"]
    for module in MODULES:
        lines.append(f"  {module} = [[")
        line = "   "
        for name in classes_of(module):
            if len(line) + 1 + len(name) > 138:
                lines.append(line)
                line = "   "
            line += " " + name
        lines += [line, "  ]],"]
    with open(os.path.join(HERE, "operation_classes.lua"), "w") as file:
        file.write("\n".join(lines + ["}", ""]))


main()
