"""The dtype that Keras gives to the result of every op of two operands: writes promotions.lua. Run with Keras and TensorFlow installed:
    python spec/golden/promotions.py
An operand is a tensor of each dtype or a Python bool, int or float. Keras' own rule, that of its symbolic tensors, is asked; TensorFlow is
the backend because the others have no 64-bit numbers."""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"
import keras
from keras import KerasTensor, ops

DTYPES = "float32 float16 bfloat16 float64 int8 uint8 int32 int64 bool".split()
NUMBERS = {"a boolean": True, "a whole number": 2, "a fraction": 0.5}
OPS = ("add subtract multiply divide divide_no_nan power mod maximum minimum equal not_equal less less_equal greater greater_equal "
       "logical_and logical_or where concatenate stack matmul").split()


def dtype_of(op, a, b):
    function = getattr(ops, op)
    if op == "where":
        result = function(KerasTensor((2, 2), "bool"), a, b)
    elif op in ("concatenate", "stack"):
        result = function([a, b])
    else:
        result = function(a, b)
    return keras.backend.standardize_dtype(result.dtype)


def row(op, first):
    names = []
    for dtype in DTYPES:
        second = KerasTensor((2, 2), dtype)
        names.append(dtype_of(op, first, second))
        assert names[-1] == dtype_of(op, second, first), (op, first, dtype)
    return " ".join(names)


def table(op):
    rows = [(dtype, row(op, KerasTensor((2, 2), dtype))) for dtype in DTYPES]
    if op not in ("concatenate", "stack", "matmul"):
        rows += [(name, row(op, value)) for name, value in NUMBERS.items()]
    return tuple(rows)


tables = {}
for op in OPS:
    tables.setdefault(table(op), []).append(op)
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "promotions.lua"), "w") as file:
    file.write("-- Written by promotions.py with Keras %s: ops whose results have the same dtypes, and a row of dtypes for each first "
               "operand.\n" % keras.__version__)
    file.write("return {\n  dtypes = \"%s\",\n" % " ".join(DTYPES))
    for rows, names in tables.items():
        file.write("  {\n    ops = \"%s\",\n" % " ".join(names))
        for name, results in rows:
            file.write("    [\"%s\"] = \"%s\",\n" % (name, results))
        file.write("  },\n")
    file.write("}\n")
