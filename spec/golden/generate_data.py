"""Golden values of the input pipeline: the orders that tf.data gives, for data_spec.lua to compare with.

    /tmp/keras/bin/python spec/golden/generate_data.py

writes orders.lua: one list of cases, each with its arguments and, for each of some passes, the elements in their order. How to get
the Python with TensorFlow is said in generate.py.
"""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))


def passes(dataset, count):
    return [[int(x) for x in dataset.as_numpy_iterator()] for _ in range(count)]


def shuffle_case(n, buffer, seed, global_seed=None, reshuffle=True, epochs=1, count=3):
    tf.random.set_seed(global_seed) if global_seed is not None else tf.random.set_seed(None)
    if global_seed is None:
        from tensorflow.python.framework import random_seed  # no public way to unset the global seed
        from tensorflow.python.eager import context
        context.context()._seed = None
    dataset = tf.data.Dataset.range(n).shuffle(buffer, seed=seed, reshuffle_each_iteration=reshuffle)
    if epochs > 1:
        dataset = dataset.repeat(epochs)
    case = {"kind": "shuffle", "n": n, "buffer": buffer, "seed": seed, "reshuffle": reshuffle, "epochs": epochs}
    if global_seed is not None:
        case["global_seed"] = global_seed
    return case, passes(dataset, count)


def shuffles():
    for n, buffer in ((10, 10), (10, 3), (10, 1), (10, 25), (1, 4), (100, 32), (37, 8)):
        for seed in (0, 1, 123):
            yield shuffle_case(n, buffer, seed)
    yield shuffle_case(10, 4, 7, reshuffle=False)
    yield shuffle_case(10, 10, 7, epochs=3, count=2)
    yield shuffle_case(10, 4, 7, epochs=3, count=2, reshuffle=False)
    yield shuffle_case(12, 5, 2 ** 31 - 1)
    yield shuffle_case(12, 5, 3, global_seed=42)
    yield shuffle_case(12, 5, 0, global_seed=0)


def interleaves():
    for n, cycle, block in ((4, 2, 1), (5, 2, 3), (5, 3, 2), (3, 8, 1), (6, 1, 2)):
        dataset = tf.data.Dataset.range(n).interleave(lambda i: tf.data.Dataset.range(10 * i, 10 * i + i + 1), cycle_length=cycle,
                                                      block_length=block)
        yield {"kind": "interleave", "n": n, "cycle": cycle, "block": block}, passes(dataset, 1)


def rebatches():
    for n, batch, sizes in ((10, 4, [3]), (10, 4, [2, 1]), (9, 3, [1, 0, 2]), (7, 7, [4, 2, 2])):
        dataset = tf.data.Dataset.range(n).batch(batch).rebatch(sizes if len(sizes) > 1 else sizes[0])
        yield {"kind": "rebatch", "n": n, "batch": batch, "sizes": sizes}, [[list(map(int, x)) for x in dataset.as_numpy_iterator()]]


def shards():
    for n, count, index in ((10, 3, 0), (10, 3, 2), (2, 5, 3), (12, 4, 3)):
        yield {"kind": "shard", "n": n, "count": count, "index": index}, passes(tf.data.Dataset.range(n).shard(count, index), 1)


def lua(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        return "{" + ", ".join(lua(x) for x in value) + "}"
    return str(value)


def main():
    lines = ["-- orders.lua: what tf.data gives. Written by generate_data.py.", "return {"]
    for family in (shuffles, interleaves, rebatches, shards):
        for case, orders in family():
            fields = ", ".join(f"{name} = {lua(value)}" for name, value in case.items())
            lines.append("  { " + fields + ", orders = {")
            for order in orders:
                text = "    " + lua(order) + ","
                while len(text) > 130:
                    cut = text.rfind(", ", 0, 128) + 1
                    lines.append(text[:cut])
                    text = "     " + text[cut:]
                lines.append(text)
            lines.append("  } },")
    lines.append("}")
    with open(os.path.join(HERE, "orders.lua"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


main()
