"""Writes spec/golden/safetensors with the Python package safetensors, for spec/golden/tensor_files_spec.lua.

python spec/golden/tensor_files.py            writes the files (pip install safetensors numpy ml_dtypes)
python spec/golden/tensor_files.py FILE...    reads files that flowlua wrote with that package and prints what is in them
"""
import os
import sys

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "safetensors")


def write():
    os.makedirs(folder, exist_ok=True)
    tensors = {"scalar": np.array(2.5, dtype="float32"), "empty": np.zeros((0, 3), dtype="float32"), "läyer/0": np.ones((1, 2), "float32")}
    for name in ("float16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool"):
        tensors[name] = np.arange(6).reshape(2, 3).astype(name)
    save_file(tensors, os.path.join(folder, "dtypes.safetensors"))
    save_file({"x": np.arange(3, dtype="int64")}, os.path.join(folder, "metadata.safetensors"), {"made by": 'a "test"\n#1'})


def show(path):
    with safe_open(path, framework="np") as file:
        for key, text in sorted((file.metadata() or {}).items()):
            print("metadata", key, text)
        for name in sorted(file.keys()):
            tensor = file.get_tensor(name)
            print(name, tensor.dtype, list(tensor.shape), tensor.reshape(-1).tolist())


if len(sys.argv) > 1:
    for argument in sys.argv[1:]:
        show(argument)
else:
    write()
