"""The order in which Keras' functions and classes take their arguments, for positions_spec.lua:

    /tmp/keras/bin/python spec/golden/positions.py > spec/golden/positions.txt

One line each: its path below keras, and the names of the parameters that may be given by position.
"""
import inspect
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"], os.environ["CUDA_VISIBLE_DEVICES"] = "3", "-1"
import keras

MODULES = ["ops", "ops.image", "random", "activations", "losses", "metrics", "utils", "layers", "optimizers", "optimizers.schedules",
           "callbacks", "initializers", "regularizers", "constraints"]

for path in MODULES:
    module = keras
    for part in path.split("."):
        module = getattr(module, part)
    for name in sorted(dir(module)):
        value = getattr(module, name)
        if name.startswith("_") or not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY)
        names = [p.name for p in inspect.signature(value).parameters.values() if p.kind in kinds]
        if len(names) > 1:
            print(f"{path}.{name}", *names)
