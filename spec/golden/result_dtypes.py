"""The dtype that an op of Keras gives when it runs, for each dtype of one operand and each pair of two: writes result_dtypes.lua. Run with
Keras and TensorFlow installed:
    python spec/golden/result_dtypes.py
promotions.py asks Keras' rule for the ops of two operands that have one; here are those that are made of others, and ops of one operand.
"-" stands where TensorFlow does not run the op."""
import os
import textwrap

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"
import keras
import tensorflow as tf
from keras import ops

DTYPES = "float32 float16 bfloat16 float64 int8 uint8 int32 int64 bool".split()
PAIRS = ("floor_divide true_divide fmod arctan2 logaddexp logaddexp2 hypot heaviside ldexp fmax fmin logical_xor isclose bitwise_and "
         "bitwise_or bitwise_xor left_shift right_shift gcd lcm outer inner dot vdot tensordot cross kron einsum append average "
         "correlate").split()
UNARY = ("abs negative sign square sqrt exp exp2 expm1 log log2 log10 log1p floor ceil round trunc sin cos tan sinh cosh tanh arcsin "
         "arccos arctan arcsinh arccosh arctanh leaky_relu relu isfinite isinf isnan isposinf isneginf signbit logical_not "
         "bitwise_not angle real imag deg2rad rad2deg nan_to_num i0 cbrt sinc erf erfc erfinv sum prod max min mean var std any all "
         "argmax argmin logsumexp median nanmean nansum nanmax nanmin nanprod nanvar nanstd count_nonzero cumsum cumprod diff sort "
         "argsort trace diagonal tril triu transpose flip ravel norm normalize average ptp zeros_like ones_like bincount corrcoef "
         "layer_normalization").split()
SHAPES = {"cross": (2, 3), "correlate": (4,)}
CALLS = {"tensordot": lambda a, b: ops.tensordot(a, b, 1), "einsum": lambda a, b: ops.einsum("ij,jk->ik", a, b),
         "average": lambda a, b=None: ops.average(a, weights=b)}


def tensor(op, dtype):
    return tf.cast(tf.ones(SHAPES.get(op, (2, 2))), dtype)


def dtype_of(op, *operands):
    try:
        result = CALLS.get(op, getattr(ops, op))(*operands)
    except Exception:
        return "-"
    return keras.backend.standardize_dtype(result.dtype)


def pairs(op):
    return tuple((first, " ".join(dtype_of(op, tensor(op, first), tensor(op, second)) for second in DTYPES)) for first in DTYPES)


def write(file, name, ops_of, row_of):
    tables = {}
    for op in ops_of:
        tables.setdefault(row_of(op), []).append(op)
    file.write("  %s = {\n" % name)
    for rows, names in tables.items():
        lines = textwrap.wrap(" ".join(names), 110)
        file.write("    {\n      ops = %s,\n" % " ..\n        ".join("\"%s \"" % line for line in lines))
        for key, results in rows:
            file.write("      %s = \"%s\",\n" % (key, results))
        file.write("    },\n")
    file.write("  },\n")


with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "result_dtypes.lua"), "w") as file:
    file.write("-- Written by result_dtypes.py with Keras %s: ops whose results have the same dtypes.\nreturn {\n" % keras.__version__)
    file.write("  dtypes = \"%s\",\n" % " ".join(DTYPES))
    write(file, "pairs", PAIRS, pairs)
    write(file, "unary", UNARY, lambda op: (("results", " ".join(dtype_of(op, tensor(op, dtype)) for dtype in DTYPES)),))
    file.write("}\n")
