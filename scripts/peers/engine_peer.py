"""engine_peer.py ENGINE NET MODE SECONDS THREADS: the side of an engine that only predicts in compare.py, which describes the
conversation. onnxruntime and openvino open flowlua's own export of the net; litert (TensorFlow Lite with XNNPACK) the net of
tensorflow_nets.py, which its converter takes."""
import os
import subprocess
import sys
import tempfile

import numpy as np

from conversation import PIXELS, answer, one_by_one

engine, net, mode, seconds, threads = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]), int(sys.argv[5])
here = os.path.dirname(os.path.abspath(__file__))
flowlua = os.path.join(os.path.dirname(os.path.dirname(here)), "build", "bin", "flowlua")
batch = 1 if mode == "predict1" else 32


def exported(folder):
    path = os.path.join(folder, net + ".onnx")
    subprocess.run([flowlua, os.path.join(here, "flowlua_peer.lua"), net, "export", "1", "1", path], check=True)
    return path


def onnxruntime(folder):
    """Returns a function of a batch, the shape of one row and the name of its dtype; so do the others."""
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(exported(folder), options, providers=["CPUExecutionProvider"])
    given = session.get_inputs()[0]
    dtype = "float32" if "float" in given.type else given.type[len("tensor("):-1]
    return lambda x: session.run(None, {given.name: x})[0], given.shape[1:], dtype


def openvino(folder):
    import openvino as ov
    core = ov.Core()
    model = core.read_model(exported(folder))
    given = model.inputs[0]
    shape = [size.get_length() for size in list(given.partial_shape)[1:]]
    model.reshape([batch] + shape)
    compiled = core.compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY",
                                                 "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    return lambda x: request.infer({0: x})[compiled.outputs[0]], shape, given.element_type.to_dtype().name


def litert(folder):
    import tensorflow_nets
    import tensorflow as tf
    model, shape, _, _ = tensorflow_nets.NETS[net]()
    interpreter = tf.lite.Interpreter(model_content=tf.lite.TFLiteConverter.from_keras_model(model).convert(), num_threads=threads)
    given, made = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    interpreter.resize_tensor_input(given["index"], (batch,) + shape)
    interpreter.allocate_tensors()

    def predict(x):
        interpreter.set_tensor(given["index"], x)
        interpreter.invoke()
        return interpreter.get_tensor(made["index"])
    return predict, shape, np.dtype(given["dtype"]).name


with tempfile.TemporaryDirectory() as folder:
    predict, shape, dtype = {"onnxruntime": onnxruntime, "openvino": openvino, "litert": litert}[engine](folder)
random, times = np.random.default_rng(1), []
if "int" in dtype:
    x = random.integers(0, 20000, (batch, *shape)).astype(dtype)
else:
    x = random.random((batch, *shape), dtype="float32") * (255 if net in PIXELS else 1)
answer(one_by_one(predict, [x], 1, times) if batch == 1 else lambda passes: [predict(x) for _ in range(passes)], batch, seconds, times)
