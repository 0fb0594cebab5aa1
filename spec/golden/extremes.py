"""Golden cases of edges_spec.lua: values and gradients of activations, layers and functions at zeros, very small, very large and infinite
numbers, and at NaN.

    /tmp/keras/bin/python spec/golden/extremes.py

writes extremes.lua as edges.py writes edges.lua. Numbers whose inverse is no normal float32 are left out: TensorFlow takes some for 0."""
import edges
from edges import case
from keras import activations, layers, ops

edges.POINTS = [0.0, 1e-20, -1e-20, 1e-4, -1e-4, 1.0, -1.0, 104.0, -104.0, 1e4, -1e4, 1e19, -1e19, 1e38, -1e38,
                float("inf"), float("-inf"), float("nan")]
FUNCTIONS = """abs sign square sqrt rsqrt exp expm1 log log1p log2 log10 tanh sinh cosh arcsin arccos arctan arcsinh arccosh erf erfinv
    reciprocal sinc i0 cbrt exp2""".split()
LAYERS = [("ReLU", {}), ("ReLU", {"max_value": 6.0}), ("ReLU", {"negative_slope": 0.2}), ("ReLU", {"threshold": 1.0}),
          ("LeakyReLU", {}), ("LeakyReLU", {"negative_slope": 2.0}), ("ELU", {}), ("ELU", {"alpha": 0.5}), ("PReLU", {})]


def cases():
    for name in edges.ACTIVATIONS:
        yield case("activation", name, {}, getattr(activations, name))
        if hasattr(ops, name):
            yield case("function", name, {}, getattr(ops, name))
    for name in FUNCTIONS:
        if name not in edges.ACTIVATIONS:
            yield case("function", name, {}, getattr(ops, name))
    for slope in (0.3, 2.0):
        yield case("function", "leaky_relu", {"negative_slope": slope}, lambda x, slope=slope: ops.leaky_relu(x, slope))
    for name, options in LAYERS:
        yield case("layer", name, options, lambda x, name=name, options=options: getattr(layers, name)(**options)(x[:, None])[:, 0])


if __name__ == "__main__":
    edges.write("extremes", cases())
