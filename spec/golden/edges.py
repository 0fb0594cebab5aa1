"""Golden cases of edges_spec.lua: values and gradients of activations, layers, functions and losses where their branches meet (0, the ends
of a range, equal numbers), which random numbers do not meet. Biases begin with zeros and pictures have black borders, so programs do.

    /tmp/keras/bin/python spec/golden/edges.py

writes edges.lua: the points, and a list of { kind, name, options, values, gradients }; a loss has its labels, too."""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"
import keras
import numpy as np
import tensorflow as tf
from keras import activations, layers, losses, ops

HERE = os.path.dirname(os.path.abspath(__file__))
POINTS = [0.0, 1.0, -1.0, 3.0, -3.0, 6.0, -6.0, 0.5, -0.5, 2.0, -2.0, 20.0, -20.0]
ACTIVATIONS = """celu elu exponential gelu hard_shrink hard_sigmoid hard_silu hard_tanh leaky_relu linear log_sigmoid mish relu relu6 selu
    sigmoid silu soft_shrink softplus softsign sparse_plus sparse_sigmoid squareplus tanh tanh_shrink""".split()
LAYERS = [("LeakyReLU", {}), ("LeakyReLU", {"negative_slope": 2.0}), ("PReLU", {}), ("PReLU", {"alpha_initializer": "ones"}),
          ("ReLU", {}), ("ReLU", {"max_value": 6.0}), ("ReLU", {"max_value": 3.0}), ("ReLU", {"threshold": 1.0}),
          ("ReLU", {"negative_slope": 0.2}), ("ReLU", {"negative_slope": 0.2, "max_value": 6.0, "threshold": 0.5}),
          ("ELU", {}), ("ELU", {"alpha": 0.5})]
OPTIONS = [("relu", {"threshold": 1.0}), ("relu", {"max_value": 6.0}), ("relu", {"max_value": 3.0}), ("relu", {"negative_slope": 0.2}),
           ("relu", {"negative_slope": 0.2, "max_value": 6.0, "threshold": 0.5}), ("relu", {"negative_slope": 2.0, "threshold": -1.0}),
           ("leaky_relu", {"negative_slope": 2.0}), ("elu", {"alpha": 0.5}), ("celu", {"alpha": 0.5}), ("hard_shrink", {"threshold": 1.0}),
           ("soft_shrink", {"threshold": 1.0}), ("squareplus", {"b": 2.0})]
# Functions of x as both languages write them.
FUNCTIONS = {
    "abs": "ops.abs(x)", "sign": "ops.sign(x)", "square": "ops.square(x)", "sinh": "ops.sinh(x)", "arcsinh": "ops.arcsinh(x)",
    "arctan": "ops.arctan(x)", "arctan2": "ops.arctan2(x, 1)", "hypot": "ops.hypot(x, 1)", "logaddexp": "ops.logaddexp(x, 0)",
    "maximum": "ops.maximum(x, 0)", "minimum": "ops.minimum(x, 0)", "pair": "ops.maximum(x, ops.flip(x))", "mod": "ops.mod(x, 2)",
    "clip": "ops.clip(x, -1, 1)", "power": "ops.power(x, 2)", "max": "ops.reshape(ops.max(ops.abs(x)), (1,))",
    "min": "ops.reshape(ops.min(ops.abs(x)), (1,))", "std": "ops.reshape(ops.std(x), (1,))", "norm": "ops.reshape(ops.norm(x * 0), (1,))",
    "entropy": "ops.binary_crossentropy(x * 0 + 0.3, x, from_logits=True)",
}
LUA = {"max": "ops.reshape(ops.max(ops.abs(x)), { 1 })", "min": "ops.reshape(ops.min(ops.abs(x)), { 1 })",
       "std": "ops.reshape(ops.std(x), { 1 })", "norm": "ops.reshape(ops.norm(x * 0), { 1 })",
       "entropy": "ops.binary_crossentropy(x * 0 + 0.3, x, { from_logits = true })"}
LOSSES = """BinaryCrossentropy BinaryFocalCrossentropy Hinge SquaredHinge CategoricalHinge Huber LogCosh MeanAbsoluteError MeanSquaredError
    MeanAbsolutePercentageError MeanSquaredLogarithmicError Poisson KLDivergence CosineSimilarity Dice Tversky""".split()


def lua(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value + '"'
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {lua(entry)}" for key, entry in value.items()) + " }" if value else "{}"
    if isinstance(value, list):
        return "{ " + ", ".join(map(lua, value)) + " }"
    return "0/0" if np.isnan(value) else f"{'-' if value < 0 else ''}1/0" if np.isinf(value) else f"{value:.8g}"


def case(kind, name, options, f, labels=None):
    x = tf.constant(POINTS)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
        total = tf.reduce_sum(y)
    gradient = tape.gradient(total, x)
    gradient = np.zeros(len(POINTS)) if gradient is None else gradient.numpy()
    fields = [f'kind = "{kind}"', f'name = "{name}"', f"options = {lua(options)}"]
    fields += [f"labels = {lua(labels)}"] if labels else []
    return fields + [f"values = {lua(list(map(float, y.numpy())))}", f"gradients = {lua(list(map(float, gradient)))}"]


def cases():
    for name in ACTIVATIONS:
        yield case("activation", name, {}, getattr(activations, name))
        if hasattr(ops, name):
            yield case("function", name, {}, getattr(ops, name))
    for name, options in OPTIONS:
        yield case("function", name, options, lambda x, name=name, options=options: (
            activations.relu if name == "relu" else getattr(ops, name))(x, **options))
    for name, options in LAYERS:
        yield case("layer", name, options, lambda x, name=name, options=options: getattr(layers, name)(**options)(x[:, None])[:, 0])
    for name, text in FUNCTIONS.items():
        yield case("formula", LUA.get(name, text), {}, lambda x, text=text: eval(text))
    for name in LOSSES:
        for options in [{}, {"from_logits": True}] if "Cross" in name else [{}]:
            for labels in ([0.0] * 13, [1.0] * 13, [0.0, 1.0] * 6 + [0.0]):
                yield case("loss", name, options, lambda x, name=name, options=options, labels=labels: tf.reshape(
                    getattr(losses, name)(**options)(tf.constant([labels]), x[None, :]), [1]), labels)


def write(name, made):
    """NAME.lua, of the script NAME.py."""
    lines = [f"-- Made by {name}.py.", "return {", f"  points = {lua(POINTS)},"]
    for fields in made:
        line = "  {"
        for field in fields:
            for piece in field.split(", "):
                if len(line) + len(piece) > 136:
                    lines.append(line)
                    line = "   "
                line += " " + piece + ","
        lines.append(line.rstrip(",") + " },")
    with open(os.path.join(HERE, name + ".lua"), "w") as file:
        file.write("\n".join(lines + ["}", ""]))
    print(len(lines), "lines")


if __name__ == "__main__":
    write("edges", cases())
