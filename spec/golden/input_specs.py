"""Golden cases of input_specs_spec.lua: which inputs Keras' layers with an input_spec take.

    /tmp/keras/bin/python spec/golden/input_specs.py

writes input_specs.lua: for each case the options of the specs, the shapes and dtypes of the inputs, with -1 for a size that is not known,
and whether Keras calls the layer. Axes count from 1."""
import itertools
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"
import keras

HERE = os.path.dirname(os.path.abspath(__file__))
SPECS = [
    {"ndim": 2}, {"min_ndim": 2}, {"max_ndim": 2}, {"min_ndim": 2, "max_ndim": 3}, {"axes": {-1: 3}}, {"axes": {1: 3}},
    {"axes": {1: None, -1: 3}, "min_ndim": 2}, {"shape": (None, 3)}, {"shape": (None, None, 3)}, {"shape": (None, 3), "min_ndim": 1},
    {"shape": (None, 3, 1), "allow_last_axis_squeeze": True}, {"shape": (None, 3), "allow_last_axis_squeeze": True}, {"dtype": "float32"},
    {"dtype": "int32", "ndim": 2}, {},
]
INPUTS = [((3,), "float32"), ((4,), "float32"), ((), "float32"), ((None,), "float32"), ((2, 3), "float32"), ((3, 1), "float32"),
          ((None, 3), "float32"), ((3,), "int32"), ((1,), "int32"), ((3,), "float16")]


class Given(keras.layers.Layer):
    def call(self, x):
        return x


def takes(specs, inputs):
    layer = Given()
    layer.input_spec = [keras.layers.InputSpec(**spec) for spec in specs]
    if len(specs) == 1:
        layer.input_spec = layer.input_spec[0]
    tensors = [keras.KerasTensor((None, *shape), dtype=dtype) for shape, dtype in inputs]
    try:
        layer(tensors[0] if len(tensors) == 1 else tensors)
    except (ValueError, IndexError):
        return False
    return True


def lua(value):
    if isinstance(value, dict):
        entries = [f"[{k + 1 if k >= 0 else k}] = {lua(v)}" if isinstance(k, int) else f"{k} = {lua(v)}" for k, v in value.items()]
        return "{ " + ", ".join(entries) + " }"
    if isinstance(value, (list, tuple)):
        return "{ " + ", ".join(map(lua, value)) + " }" if value else "{}"
    if value is None:
        return "-1"
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


lines = ["-- Made by input_specs.py.", "return {"]
cases = [([spec], [given]) for spec, given in itertools.product(SPECS, INPUTS)]
cases += [([SPECS[i], SPECS[k]], [INPUTS[m] for m in which])
          for i, k, which in itertools.product((0, 4), (2, 13), ((0,), (0, 0), (0, 7), (4, 7), (0, 0, 0)))]
for specs, inputs in cases:
    lines += [f"  {{ {lua(specs)},", f"    {lua(inputs)}, {lua(takes(specs, inputs))} }},"]
with open(os.path.join(HERE, "input_specs.lua"), "w") as file:
    file.write("\n".join(lines + ["}", ""]))
