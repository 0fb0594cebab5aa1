"""Golden cases of call_order_spec.lua: graphs in which BatchNormalization layers, and a model with one, are called several times: their
moving averages after a step of training depend on the order in which Keras runs the calls.

    /tmp/keras/bin/python spec/golden/call_order.py

writes call_order.lua: for each graph the number of inputs, the calls ({ kind, layer, tensors ... }, all counted from 1, tensors after the
inputs in their order), the outputs, and the moving averages of the two layers and of the model's layer."""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"
import keras
import numpy as np
from keras import layers

HERE = os.path.dirname(os.path.abspath(__file__))


def graph(seed):
    random = np.random.default_rng(seed)
    inputs, calls = int(random.integers(1, 4)), []
    for _ in range(int(random.integers(3, 9))):
        count, kind = inputs + len(calls), random.random()
        tensor = int(random.integers(count))
        if kind < 0.5:
            calls.append(("norm", int(random.integers(2)), tensor))
        elif kind < 0.75:
            calls.append(("tower", 0, tensor))
        else:
            calls.append(("add", 0, tensor, int(random.integers(count))))
    return inputs, calls, [inputs + len(calls) - 1 - i for i in range(min(int(random.integers(1, 4)), len(calls)))]


def averages(inputs, calls, outputs):
    tensors = [keras.Input((2,)) for _ in range(inputs)]
    norms = [layers.BatchNormalization(momentum=0.5) for _ in range(3)]
    given = keras.Input((2,))
    tower = keras.Model(given, norms[2](given))
    for norm in norms[:2]:
        norm.build((None, 2))
    for kind, layer, *of in calls:
        own = [tensors[i] for i in of]
        tensors.append(norms[layer](own[0]) if kind == "norm" else tower(own[0]) if kind == "tower" else layers.Add()(own))
    model = keras.Model(tensors[:inputs], [tensors[i] for i in outputs])
    model([np.array([[1.0, -2.0], [3.0, 5.0], [-4.0, 0.5]]) + 7 * i for i in range(inputs)], training=True)
    return [[round(float(v), 5) for v in norm.moving_mean.numpy()] for norm in norms]


def lua(value):
    if isinstance(value, (list, tuple)):
        return "{ " + ", ".join(map(lua, value)) + " }"
    return f'"{value}"' if isinstance(value, str) else repr(value)


lines = ["-- Made by call_order.py.", "return {"]
for seed in range(24):
    inputs, calls, outputs = graph(seed)
    means = averages(inputs, calls, outputs)
    counted = [(kind, layer + 1, *[i + 1 for i in of]) for kind, layer, *of in calls]
    lines += [f"  {{ {inputs}, {{"] + [f"    {lua(call)}," for call in counted]
    lines.append(f"  }}, {lua([i + 1 for i in outputs])}, {lua(means)} }},")
with open(os.path.join(HERE, "call_order.lua"), "w") as file:
    file.write("\n".join(lines + ["}", ""]))
