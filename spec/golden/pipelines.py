"""What tf.data makes of small data sets, and Keras' FeatureSpace of raw features, for pipelines_spec.lua to compare with.

    python spec/golden/pipelines.py

writes pipelines.lua: for each case the elements, each a list of numbers with its shape.
"""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np
import tensorflow as tf

from generate import write_entries

Dataset = tf.data.Dataset


def elements(dataset):
    found = []
    for element in dataset:
        parts = element if isinstance(element, tuple) else (element,)
        if isinstance(element, dict):
            parts = [element[name] for name in sorted(element)]
        found.append([{"shape": list(part.shape), "values": [value.decode() if isinstance(value, bytes) else value for value in
                                                             np.asarray(part).reshape(-1).tolist()]} for part in parts])
    return found


def sequences():
    return Dataset.from_generator(lambda: ([float(n)] * n for n in [1, 5, 2, 7, 3, 3, 4, 9, 1, 6]),
                                  output_signature=tf.TensorSpec([None], tf.float32))


def batch(size):
    return lambda window: window.batch(size)


def texts():
    return Dataset.from_tensor_slices(["the cat sat", "a dog", "birds fly over the sea", "one"])


def words():
    return texts().map(tf.strings.split)


def named():
    return Dataset.zip((Dataset.range(4), words())).map(lambda n, text: {"n": n, "text": text})


def pairs():
    return Dataset.from_tensor_slices((np.arange(7, dtype=np.int64), np.arange(7, dtype=np.float32) / 2))


CASES = {
    "window": Dataset.range(7).window(3).flat_map(batch(3)),
    "window_shift": Dataset.range(7).window(3, shift=1).flat_map(batch(3)),
    "window_full": Dataset.range(7).window(3, shift=1, drop_remainder=True).flat_map(batch(3)),
    "window_stride": Dataset.range(7).window(3, 1, 2).flat_map(batch(3)),
    "window_apart": Dataset.range(9).window(2, shift=4).flat_map(batch(2)),
    "window_stride_full": Dataset.range(9).window(2, 2, 3, True).flat_map(batch(2)),
    "window_pairs": pairs().window(3, shift=2).flat_map(lambda x, y: Dataset.zip((x.batch(2), y.batch(2)))),
    "group_by_window": Dataset.range(10).group_by_window(lambda x: x % 3, lambda key, group: group.batch(2), window_size=2),
    "group_keys": Dataset.range(10).group_by_window(lambda x: x % 2, lambda key, group: group.map(lambda x: x * 10 + key),
                                                    window_size_func=lambda key: key + 2),
    "buckets": sequences().bucket_by_sequence_length(lambda x: tf.shape(x)[0], [3, 5], [2, 3, 2]),
    "buckets_dropped": sequences().bucket_by_sequence_length(lambda x: tf.shape(x)[0], [3, 5], [2, 3, 2], drop_remainder=True),
    "buckets_boundary": sequences().bucket_by_sequence_length(lambda x: tf.shape(x)[0], [4, 10], [2, 3, 1], pad_to_bucket_boundary=True,
                                                              padding_values=-1.0),
    "buckets_texts": words().bucket_by_sequence_length(lambda x: tf.shape(x)[0], [3, 5], [2, 2, 2], padding_values="-"),
    "pad_number": sequences().padded_batch(4, padded_shapes=9, padding_values=tf.constant(-1.0)),
    "pad_texts": words().padded_batch(3, padding_values="<pad>"),
    "pad_texts_wide": words().padded_batch(3, padded_shapes=[6], padding_values="<pad>", drop_remainder=True),
    "pad_named": named().padded_batch(3, padded_shapes={"text": [6], "n": []}, padding_values={"text": "-", "n": np.int64(0)}),
    "pad_split": texts().batch(3).map(lambda s: tf.strings.split(s).to_tensor("?")),
    "joined_texts": words().map(lambda s: tf.concat([["[S]"], s, ["[E]"]], 0)),
    "stacked_texts": words().map(lambda s: tf.stack([s, s], 1)),
    "texts": Dataset.from_tensors("a").repeat(2),
    "sizes": Dataset.range(1, 4).map(lambda x: tf.fill([x, 2], x)),
    "numbers_as_texts": Dataset.range(3).map(lambda x: tf.strings.join(["n", tf.strings.as_string(x)], separator="-")),
    "scan": Dataset.range(6).scan(np.int64(1), lambda state, x: (state + x, state * x)),
    "scan_pair": pairs().scan((np.int64(0), np.float32(1)), lambda s, e: ((s[0] + e[0], s[1] + e[1]), (s[0], s[1] * e[1]))),
    "take_while": Dataset.range(10).take_while(lambda x: x * x < 20),
    "unique": Dataset.from_tensor_slices([3, 1, 3, 2, 1, 5]).unique(),
    "unique_texts": Dataset.from_tensor_slices(["b", "a", "b", "c"]).unique(),
    "enumerate": Dataset.range(3, 6).enumerate(2),
    "rebatch": Dataset.range(10).batch(4).rebatch([3, 2]),
    "counter": Dataset.counter(3, 2).take(4),
    "choose": Dataset.choose_from_datasets([Dataset.range(3), Dataset.range(10, 14)],
                                           Dataset.from_tensor_slices(np.array([1, 0, 1, 1, 0, 1, 0]))),
}

RAW = {
    "age": [21.0, 35.5, 48.25, 62.0, 21.0, 30.0], "income": [1.5, 2.5, 0.5, 8.0, 4.0, 3.0], "height": [1.5, 1.75, 1.6, 1.9, 1.8, 1.7],
    "job": ["cook", "smith", "cook", "nurse", "clerk", "smith"], "city": ["bern", "rome", "oslo", "rome", "bern", "bern"],
    "rooms": [1, 2, 3, 2, 2, 5], "code": [10, 11, 12, 13, 14, 15],
}


def space_of(output_mode, kind="one_hot"):
    Space = keras.utils.FeatureSpace
    return Space(features={
        "age": "float_normalized", "income": Space.float_discretized(num_bins=3, output_mode=kind),
        "height": Space.float_rescaled(2.0, -1.0),
        "job": Space.string_categorical(max_tokens=4, num_oov_indices=1, output_mode=kind),
        "city": Space.string_hashed(num_bins=5, output_mode=kind), "rooms": Space.integer_categorical(output_mode=kind),
        "code": Space.integer_hashed(num_bins=4, output_mode=kind)},
        crosses=[("job", "rooms"), Space.cross(("city", "code"), crossing_dim=6, output_mode=kind)], crossing_dim=8,
        output_mode=output_mode)


def encoded(output_mode, kind="one_hot"):
    space = space_of(output_mode, kind)
    dataset = Dataset.from_tensor_slices(RAW)
    space.adapt(dataset)
    made = space(RAW)
    if output_mode == "concat":
        one = space({name: values[1] for name, values in RAW.items()})
        return [[{"shape": list(made.shape), "values": np.asarray(made).reshape(-1).tolist()}],
                [{"shape": list(one.shape), "values": np.asarray(one).reshape(-1).tolist()}]]
    return [[{"shape": list(made[name].shape), "values": np.asarray(made[name]).reshape(-1).tolist()} for name in sorted(made)]]


entries = [{"name": name, "elements": elements(dataset)} for name, dataset in CASES.items()]
entries.append({"name": "space_concat", "elements": encoded("concat")})
entries.append({"name": "space_dict", "elements": encoded("dict")})
entries.append({"name": "space_int", "elements": encoded("dict", "int")})
write_entries("pipelines", entries)
