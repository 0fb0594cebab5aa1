"""Checks exported ONNX models against what flowlua predicted: needs onnx and onnxruntime.

python onnx_check.py FOLDER: each FOLDER/NAME.onnx is checked (onnx.checker, with types and shapes) and run on NAME.x1.npy, NAME.x2.npy, ...
Prints a line a model: NAME, a tab, and the largest difference to NAME.y1.npy, NAME.y2.npy, ... over the largest value (at least 1),
or what was wrong, or "undefined" where ONNX leaves open what an op gives: a Cast of NaN or of what its dtype cannot hold, which a result
shows by the whole number that a processor makes of it; the places of the largest and smallest numbers where one is NaN. "rounding" says
that ONNX Runtime itself is as far from what it computes in float64: a formula such as 1 / (1 + tanh(x)) makes large differences of the last
bit of tanh, which no other rounding of the inputs shows.
"""
import glob
import os
import sys

import numpy
import onnx
import onnxruntime

TOLERANCE = 1e-5  # as of onnx_random_spec.lua
PLACES = ("ArgMax", "ArgMin", "TopK")


def arrays(stem, kind):
    found = []
    while os.path.exists(f"{stem}.{kind}{len(found) + 1}.npy"):
        found.append(numpy.load(f"{stem}.{kind}{len(found) + 1}.npy"))
    return found


def distance(result, wanted):
    """Over the largest finite value. NaN and an infinity are only like themselves: where one of both has them, it is infinite."""
    same = (result == wanted) | (numpy.isnan(result) & numpy.isnan(wanted))
    finite = numpy.isfinite(result) & numpy.isfinite(wanted)
    if not (same | finite).all():
        return numpy.inf
    largest = numpy.abs(wanted[finite]).max(initial=1.0)
    return float((numpy.abs(result[finite] - wanted[finite]) / largest).max(initial=0.0))


def in_double(model):
    """The same model with float64 in place of float32, also as what its casts make."""
    float32, float64 = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE

    def convert(tensor):
        if tensor.data_type == float32:
            name = tensor.name
            tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor).astype("float64"), name))

    graph = model.graph
    del graph.value_info[:]
    for slot in [*graph.input, *graph.output]:
        if slot.type.tensor_type.elem_type == float32:
            slot.type.tensor_type.elem_type = float64
    for tensor in graph.initializer:
        convert(tensor)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                convert(attribute.t)
            elif node.op_type == "Cast" and attribute.name == "to" and attribute.i == float32:
                attribute.i = float64
    return model


def own_rounding(path, inputs, results):
    """How far the results are from those in float64; 0 where ONNX Runtime has no float64 for an op."""
    try:
        session = onnxruntime.InferenceSession(in_double(onnx.load(path)).SerializeToString(), providers=["CPUExecutionProvider"])
        wide = [value.astype("float64") if value.dtype == numpy.float32 else value for value in inputs]
        exact = session.run(None, {slot.name: value for slot, value in zip(session.get_inputs(), wide, strict=True)})
    except Exception:
        return 0.0
    return max(distance(result.astype("float64"), wanted.astype("float64")) for result, wanted in zip(results, exact, strict=True))


def places_of_nan(path, inputs):
    """Whether an op that tells places is given a NaN."""
    model = onnx.load(path)
    asked = sorted({node.input[0] for node in model.graph.node if node.op_type in PLACES})
    if not asked:
        return False
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in asked)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    given = session.run(asked, {slot.name: value for slot, value in zip(session.get_inputs(), inputs, strict=True)})
    return any(bool(numpy.isnan(value.astype("float64")).any()) for value in given)


def check(path):
    onnx.checker.check_model(path, full_check=True)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    stem = path[: -len(".onnx")]
    inputs, expected = arrays(stem, "x"), arrays(stem, "y")
    results = session.run(None, {slot.name: value for slot, value in zip(session.get_inputs(), inputs, strict=True)})
    worst, undefined = 0.0, False
    for result, wanted in zip(results, expected, strict=True):
        if result.shape != wanted.shape or result.dtype != wanted.dtype:
            raise ValueError(f"{result.dtype} {result.shape}, expected {wanted.dtype} {wanted.shape}")
        if result.dtype in (numpy.int32, numpy.int64):
            undefined |= bool(((result == numpy.iinfo(result.dtype).min) & (wanted != result)).any())
        if wanted.size:
            worst = max(worst, distance(result.astype("float64"), wanted.astype("float64")))
    if undefined or (worst > TOLERANCE and places_of_nan(path, inputs)):
        return "undefined"
    if TOLERANCE < worst < numpy.inf and own_rounding(path, inputs, results) * 4 >= worst:
        return "rounding"
    return repr(worst)


if __name__ == "__main__":
    onnxruntime.set_default_logger_severity(3)
    for model in sorted(glob.glob(os.path.join(sys.argv[1], "*.onnx"))):
        name = os.path.basename(model)[: -len(".onnx")]
        try:
            print(f"{name}\t{check(model)}")
        except Exception as problem:
            print(f"{name}\t{type(problem).__name__}: {' '.join(str(problem).split())[:400]}")
