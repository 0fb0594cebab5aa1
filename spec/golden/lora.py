# lora.py: writes lora.json: attentions whose projections have LoRA, as Keras computes and trains them. Run: python spec/golden/lora.py
import json
import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import numpy as np

import keras
import tensorflow as tf

CASES = [
    ("MultiHeadAttention", dict(num_heads=2, key_dim=3, value_dim=2), {}, {"query": (2, 4), "value": (1, None)}),
    ("MultiHeadAttention", dict(num_heads=2, key_dim=2, use_gate=True, kernel_regularizer="l2"), dict(use_causal_mask=True),
     {"key": (1, 3), "output": (2, 2)}),
    ("GroupQueryAttention", dict(head_dim=2, num_query_heads=4, num_key_value_heads=2, sliding_window=2), {},
     {"query": (1, 2), "key": (2, 1), "value": (1, 1), "output": (1, 5)}),
]


# The same numbers as in lora_spec.lua.
def numbers(shape, start):
    count = int(np.prod(shape))
    return (((np.arange(count) + start) * 7 % 11) / 8 - 0.6).reshape(shape).astype("float32")


def run(name, arguments, options, ranks):
    layer = getattr(keras.layers, name)(**arguments)
    x = numbers((2, 3, 4), 1)
    layer(x, x)
    for part, (rank, alpha) in ranks.items():
        getattr(layer, f"_{part}_dense").enable_lora(rank, lora_alpha=alpha)
    for i, v in enumerate(layer.weights):
        v.assign(numbers(v.shape, i))
    with tf.GradientTape() as tape:
        y = layer(x, x, **options)
        loss = tf.reduce_mean(y ** 2) + sum(layer.losses)
    variables = layer.trainable_variables
    gradients = tape.gradient(loss, variables)
    flat = lambda t: [round(float(v), 6) for v in np.asarray(t).reshape(-1)]
    return {"class": name, "arguments": arguments, "options": options, "ranks": ranks, "output": flat(y), "loss": float(loss),
            "weights": [v.path.split("/", 1)[-1] for v in layer.weights], "gradients": [flat(g) for g in gradients]}


path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lora.json")
with open(path, "w") as file:
    json.dump({"keras": keras.__version__, "cases": [run(*case) for case in CASES]}, file, separators=(",", ":"))
    file.write("\n")
