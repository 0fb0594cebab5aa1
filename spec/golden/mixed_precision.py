"""Losses of Keras' mixed precision, step by step: writes mixed_precision.lua. Run with Keras and TensorFlow installed:
    python spec/golden/mixed_precision.py
The nets are those of nets.py, inputs and weights follow the formula of generate.py."""
import keras
import tensorflow as tf

from generate import Seeds, make, write_entries
from nets import NETS

CASES = [
    {"net": "mnist", "size": 12, "batch": 16, "from_logits": True, "range": (0.0, 1.0)},
    {"net": "flowers", "size": 16, "batch": 16, "from_logits": False, "range": (0.0, 255.0)},
    {"net": "residual", "size": 8, "batch": 16, "from_logits": True, "range": (-1.0, 1.0)},
]
STEPS = 8


def train(case, policy, weights, x, y):
    keras.backend.clear_session()
    keras.mixed_precision.set_global_policy(policy)
    model = NETS[case["net"]](case["size"])
    model.set_weights([make(tensor) for tensor in weights])
    model.compile(optimizer=keras.optimizers.SGD(0.05), jit_compile=False,
                  loss=keras.losses.SparseCategoricalCrossentropy(from_logits=case["from_logits"]))
    return [float(model.train_on_batch(make(x), make(y))) for _ in range(STEPS)]


def main():
    tf.config.threading.set_intra_op_parallelism_threads(2)
    seeds, entries = Seeds(314), []
    seeds.last = 7000
    for case in CASES:
        keras.mixed_precision.set_global_policy("float32")
        model = NETS[case["net"]](case["size"])
        weights = [seeds.weight(variable) for variable in model.weights]
        x = seeds.uniform([case["batch"]] + list(model.input_shape[1:]), *case["range"])
        y = seeds.labels([case["batch"]], model.output_shape[-1])
        for policy in ("float32", "mixed_bfloat16", "mixed_float16"):
            losses = train(case, policy, weights, x, y)
            print(case["net"], policy, losses)
            entries.append({"net": case["net"], "size": case["size"], "from_logits": case["from_logits"], "policy": policy, "x": x, "y": y,
                            "weights": weights, "losses": [float("%.7g" % value) for value in losses]})
    write_entries("mixed_precision", entries)


if __name__ == "__main__":
    main()
