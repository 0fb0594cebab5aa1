"""utils.py: what the helpers of keras.utils give, for spec/golden/utils_spec.lua. Needs keras.

    python spec/golden/utils.py >spec/golden/utils.lua
"""
import os
import textwrap

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np

ROWS = [[1, 2, 3], [4], [], [5, 6, 7, 8, 9]]
PAIRS = [[[1, 2]], [[3, 4], [5, 6], [7, 8]]]


def lua(value):
    if isinstance(value, np.ndarray):
        return "{ shape = %s, values = { %s } }" % (lua(list(value.shape)), ", ".join("%.9g" % x for x in value.ravel()))
    if isinstance(value, (list, tuple)):
        return "{ %s }" % ", ".join(lua(x) for x in value)
    if isinstance(value, dict):
        return "{ %s }" % ", ".join("%s = %s" % (k, lua(v)) for k, v in value.items())
    return '"%s"' % value if isinstance(value, str) else repr(value)


def row(*entries):
    text = "    { %s }," % ", ".join(lua(x) for x in entries)
    print(textwrap.fill(text, 130, subsequent_indent="      ", break_long_words=False, break_on_hyphens=False))


def main():
    print("-- utils.lua: made by utils.py; do not edit.\nreturn {")
    print("  to_categorical = {")
    for x, options in [([0, 2, 1], {}), ([0, 2, 1], dict(num_classes=5)), ([[0, 1], [2, 0]], {}), ([[1], [0], [3]], {})]:
        row(x, options, keras.utils.to_categorical(x, **options))
    print("  },\n  pad_sequences = {")
    for rows in (ROWS, PAIRS):
        for options in ({}, dict(maxlen=2), dict(maxlen=2, truncating="post"), dict(padding="post"),
                        dict(maxlen=7, value=-1.0, padding="post"),
                        dict(maxlen=3, dtype="float32", value=0.5, truncating="post", padding="post")):
            row(rows, options, keras.utils.pad_sequences(rows, **options))
    print("  },\n  normalize = {")
    x = np.array([[3.0, -4.0, 0.0], [0.0, 0.0, 0.0], [1.0, 2.0, 2.0]])
    for axis in (1, 0, -1):
        for order in (1, 2, 3):
            found = keras.utils.normalize(x, axis=axis or -1, order=order) if axis else keras.utils.normalize(x.T, axis=-1, order=order).T
            row(x.tolist(), dict(axis=axis + 1 if axis >= 0 else axis, order=order), found)
    print("  },\n  split_dataset = {")
    for total, options in [(10, dict(left_size=0.8)), (10, dict(right_size=3)), (7, dict(left_size=0.5)), (5, dict(left_size=0.5)),
                           (10, dict(left_size=2, right_size=3)), (10, dict(left_size=0.25, right_size=0.25))]:
        left, right = keras.utils.split_dataset(np.arange(total), **options)
        parts = [np.array([int(x) for x in part]) for part in (left, right)]
        row(total, options, parts)
    print("  },\n}")


main()
