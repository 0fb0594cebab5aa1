"""Golden cases of flow.keras.ops: what Keras computes, in float64 where it computes with floats, with the gradients of a weighted sum.

    /tmp/keras/bin/python spec/golden/ops.py

writes manifest/ops.lua (the calls, as Lua, in which a, b, c ... are the inputs) and values/ops.npz. The cases are in ops_cases.py. Inputs
follow from NumPy's generator with the case's number as seed, but for those that a case gives itself."""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"
import keras
import numpy as np
import tensorflow as tf

from ops_cases import CASES, Axis, Input, Position, lua

HERE = os.path.dirname(os.path.abspath(__file__))
keras.config.set_floatx("float64")


def find(name):
    module = keras
    for part in (name if name.startswith("random.") else "ops." + name).split("."):
        module = getattr(module, part)
    return module


def keras_argument(value, tensors):
    if isinstance(value, Input):
        return tensors[value.index]
    if isinstance(value, (Axis, Position)):
        return value.keras()
    if isinstance(value, list):
        return [keras_argument(entry, tensors) for entry in value]
    return value


def leaves(value):
    return [leaf for entry in value for leaf in leaves(entry)] if isinstance(value, (list, tuple)) else [value]


def weights(shape):
    return np.cos(np.arange(int(np.prod(shape)), dtype=np.float64)).reshape(shape) + 0.1


def run(number, case, arrays, lines):
    inputs = case.inputs(np.random.default_rng(number))
    tensors = [tf.constant(x) for x in inputs]
    given = [entry.keras() if isinstance(entry, Position) else entry for entry in tensors]
    positions = [isinstance(entry, Position) for entry in case.arrays]
    for i, is_position in enumerate(positions):
        if is_position:
            given[i] = tf.constant(inputs[i])
    with tf.GradientTape() as tape:
        floats = [t for t in given if t.dtype.is_floating]
        tape.watch(floats)
        result = find(case.name)(*[keras_argument(v, given) for v in case.args],
                                 **{k: keras_argument(v, given) for k, v in case.options.items()})
        results = [keras.ops.convert_to_tensor(leaf) for leaf in leaves(result)]
        loss = sum(tf.reduce_sum(r * weights(r.shape)) for r in results if r.dtype.is_floating) if case.gradient else None
    for i, x in enumerate(inputs):
        shift = (np.where(x >= 0, x + 1, x)).astype(x.dtype) if positions[i] else x
        arrays[f"{number}_in{i}"] = shift
    for i, r in enumerate(results):
        value = r.numpy()
        arrays[f"{number}_out{i}"] = (value + 1).astype(value.dtype) if i in case.positions else value
    gradients = []
    if loss is not None and floats and tf.is_tensor(loss):
        for i, g in zip([i for i, t in enumerate(given) if t.dtype.is_floating], tape.gradient(loss, floats)):
            if g is not None:
                arrays[f"{number}_gradient{i}"] = tf.convert_to_tensor(g).numpy()
                gradients.append(i + 1)
    fields = [f"number = {number}", f'op = "{case.name}"', f"inputs = {len(inputs)}", f"outputs = {len(results)}",
              f"\n    call = [[{case.call()}]]"]
    if gradients:
        fields.append("gradients = { " + ", ".join(map(str, gradients)) + " }")
    if not case.traced:
        fields.append("traced = false")
    if case.tolerance:
        fields.append(f"tolerance = {case.tolerance}")
    lines.append("  { " + ", ".join(fields).replace(", \n", ",\n") + " },")


def main():
    refused = []
    arrays, lines = {}, ["-- ops.lua: the cases of ops_spec.lua. Made by ops.py.", "return {"]
    for number, case in enumerate(CASES, 1):
        try:
            run(number, case, arrays, lines)
        except Exception as problem:
            refused.append(f"case {number}: {case.call()}: {str(problem).splitlines()[0][:150]}")
    np.savez_compressed(os.path.join(HERE, "values", "ops.npz"), **arrays)
    with open(os.path.join(HERE, "manifest", "ops.lua"), "w") as file:
        file.write("\n".join(lines + ["}", ""]))
    if refused:
        raise SystemExit("\n".join(["Keras refuses:"] + refused))
    print(len(CASES), "cases of", len({case.name for case in CASES}), "ops")


main()
