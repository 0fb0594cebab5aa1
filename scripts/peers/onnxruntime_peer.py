"""onnxruntime_peer.py NET MODE SECONDS THREADS: ONNX Runtime's side of compare.py, which describes the conversation: flowlua's own export
of the net, which it can only predict with."""
import math
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime

net, mode, seconds, threads = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
here = os.path.dirname(os.path.abspath(__file__))
flowlua = os.path.join(os.path.dirname(os.path.dirname(here)), "build", "bin", "flowlua")
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, net + ".onnx")
    subprocess.run([flowlua, os.path.join(here, "flowlua_peer.lua"), net, "export", "1", "1", path], check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
given = session.get_inputs()[0]
batch = 1 if mode == "predict1" else 32
shape = [size if isinstance(size, int) else batch for size in given.shape[1:]]
random = np.random.default_rng(1)
if "int" in given.type:
    x = random.integers(0, 20000, [batch] + shape).astype("int32" if "int32" in given.type else "int64")
else:
    x = random.random([batch] + shape, dtype="float32") * (255 if net in ("flowers", "unet") else 1)
times = []


def run(passes):
    times.clear()
    start = time.perf_counter()
    for _ in range(passes):
        began = time.perf_counter()
        session.run(None, {given.name: x})
        times.append(time.perf_counter() - began)
    return time.perf_counter() - start


run(3)
passes = max(1, round(seconds / run(1)))
print("ready", flush=True)
for _ in sys.stdin:
    seconds = run(passes)
    late = " %.1f" % (1e6 * sorted(times)[math.ceil(0.99 * len(times)) - 1]) if mode == "predict1" else ""
    print("window %d %.6f%s" % (passes * batch, seconds, late), flush=True)
