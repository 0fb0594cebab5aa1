"""Golden cases of flow.keras.ops: what Keras computes, in float64 where it computes with floats, with the gradients of a weighted sum.

    /tmp/keras/bin/python spec/golden/ops.py

writes manifest/ops/MODULE.lua for each module of Keras' ops, and values/ops.npz. A manifest is a table of ops, each a list of cases: the
numbers of the first and the last one that make this call, then the call, as Lua, in which a, b, c ... are the inputs. The cases are in
ops_cases.py, ops_options.py and ops_pictures.py, which has those of tf.image. Inputs follow from NumPy's generator with the case's number
as seed, but for those that a case gives itself."""
import glob
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"
import keras
import numpy as np
import tensorflow as tf

import ops_options      # noqa: F401  (adds to CASES)
import ops_pictures      # noqa: F401  (the same)
from ops_cases import CASES, Axis, Input, Position, lua

HERE = os.path.dirname(os.path.abspath(__file__))
keras.config.set_floatx("float64")


def find(name):
    module = tf if name.startswith("tf.") else keras
    for part in (name[3:] if module is tf else name if name.startswith("random.") else "ops." + name).split("."):
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


def run(number, case, arrays):
    """Computes the case, fills arrays, and returns what its manifest says of it."""
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
    fields = [f"[[{case.call()}]]"]
    fields += [f"inputs = {len(inputs)}"] if len(inputs) != 1 else []
    fields += [f"outputs = {len(results)}"] if len(results) != 1 else []
    fields += ["gradients = { " + ", ".join(map(str, gradients)) + " }"] if gradients else []
    fields += [] if case.traced else ["traced = false"]
    fields += [f"tolerance = {case.tolerance}"] if case.tolerance else []
    return ", ".join(fields)


def module_of(name):
    """tf.image.rot90, random.uniform and linalg.qr: tf, random, linalg; others: the module of Keras' sources."""
    return name.split(".")[0] if "." in name else find(name).__module__.split(".")[-1]


def write_manifest(module, ops):
    """ops: by name a list of [first number, last number, fields]."""
    lines = [f"-- {module}.lua: cases of ops_spec.lua. Made by ops.py.", "return {"]
    for name in sorted(ops):
        line = f'  ["{name}"] = {{'
        for i, (first, last, fields) in enumerate(ops[name]):
            piece = f"{{ {first}, {last}, {fields} }}" + ("," if i + 1 < len(ops[name]) else " },")
            if len(line) + len(piece) > 138:
                lines.append(line)
                line = "   "
            line += " " + piece
        lines.append(line)
    with open(os.path.join(HERE, "manifest", "ops", module + ".lua"), "w") as file:
        file.write("\n".join(lines + ["}", ""]))


def main():
    refused, arrays, modules = [], {}, {}
    for number, case in enumerate(CASES, 1):
        try:
            fields = run(number, case, arrays)
        except Exception as problem:
            refused.append(f"case {number}: {case.call()}: {str(problem).splitlines()[0][:150]}")
            continue
        cases = modules.setdefault(module_of(case.name), {}).setdefault(case.name, [])
        if cases and cases[-1][1] == number - 1 and cases[-1][2] == fields:
            cases[-1][1] = number
        else:
            cases.append([number, number, fields])
    np.savez_compressed(os.path.join(HERE, "values", "ops.npz"), **arrays)
    for path in glob.glob(os.path.join(HERE, "manifest", "ops", "*.lua")):
        os.remove(path)
    for module, ops in modules.items():
        write_manifest(module, ops)
    if refused:
        raise SystemExit("\n".join(["Keras refuses:"] + refused))
    print(len(CASES), "cases of", len({case.name for case in CASES}), "ops")


main()
