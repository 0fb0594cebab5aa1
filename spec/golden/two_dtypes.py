"""Golden cases of two_dtypes_spec.lua: what an optimizer makes of float32 and float64 variables that it trains together.

    /tmp/keras/bin/python spec/golden/two_dtypes.py

writes two_dtypes.lua: variables and gradients by the formula of generate.py, the values after the steps, and which slots there are, in
order. What Keras cannot run on both is not among them: Muon, and a norm over all gradients."""
import tensorflow as tf

from float64 import OPTIMIZERS
from generate import Seeds, keras, make, np, write_entries

VARIABLES = [([2, 3], "float32"), ([3], "float64"), ([4], "float32"), ([2, 2], "float64")]
STEPS = 4


def numbers(variable):
    return [float(("%.12g" if variable.dtype == "float64" else "%.8g") % number) for number in np.asarray(variable).reshape(-1)]


def entry(seeds, name, options):
    optimizer = getattr(keras.optimizers, name)(**options)
    values = [seeds.uniform(shape) for shape, _ in VARIABLES]
    variables = [keras.Variable(make(value).astype(dtype), dtype=dtype, name=f"v{i + 1}")
                 for i, (value, (_, dtype)) in enumerate(zip(values, VARIABLES))]
    steps = [[seeds.uniform(shape) for shape, _ in VARIABLES] for _ in range(STEPS)]
    for step in steps:
        gradients = [tf.constant(make(gradient).astype(dtype)) for gradient, (_, dtype) in zip(step, VARIABLES)]
        optimizer.apply_gradients(list(zip(gradients, variables)))
    slots = [v for v in optimizer.variables if v.path.split("/")[-1] not in ("iteration", "learning_rate")]
    return {"optimizer": name, "options": options, "variables": values, "steps": steps, "trained": [numbers(v) for v in variables],
            "slots": [f"{v.dtype}:{'x'.join(map(str, v.shape))}" for v in slots if len(v.shape) > 0]}


if __name__ == "__main__":
    seeds = Seeds(98600)
    write_entries("two_dtypes", [entry(seeds, name, options) for name, options in OPTIMIZERS
                                if name != "Muon" and "global_clipnorm" not in options])
