"""preprocessing.py: what Keras' layers for strings, numbers of words, hashes and bins give, for spec/golden/preprocessing_spec.lua.

    python spec/golden/preprocessing.py      writes manifest/preprocessing/CLASS.lua, files.lua and three files of keras/; needs tensorflow
"""
import os
import re

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np
import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))
L = keras.layers
REVIEWS = ["The cat sat on the mat.", "the DOG, ran!", "", "a  cat\tand a\ndog  ", "It's 5 o'clock -- (really)",
           "caf\u00e9 na\u00efve \u4f60\u597d"]
WORDS = ["red", "green", "blue", "", "teal", "red", "[UNK]"]
LONG = [("ab" * 99)[:n] for n in (1, 3, 4, 7, 8, 12, 16, 17, 31, 32, 33, 63, 64, 65, 70, 100)]


def text(value):
    """A string of Lua, by its bytes."""
    out = ['"']
    for byte in (value if isinstance(value, bytes) else value.encode()):
        c = chr(byte)
        out.append("\\%03d" % byte if byte < 32 or byte > 126 or c in '"\\' else c)
    return "".join(out) + '"'


def lua(value):
    if value is None:
        return "false"
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (str, bytes)):
        return text(value)
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return "%.9g" % value
    if isinstance(value, dict):
        return "{ " + ", ".join("%s = %s" % (k, lua(v)) for k, v in value.items()) + " }"
    return "{ " + ", ".join(lua(v) for v in value) + " }" if len(value) else "{}"


def result(y):
    y = y.numpy() if hasattr(y, "numpy") else np.asarray(y)
    values = [v for v in y.ravel()]
    return {"shape": list(y.shape), "dtype": "string" if y.dtype == object else str(y.dtype), "values": values}


CASES = []


def case(name, options, calls, adapt=None, dtype=None):
    """calls: what the layer is called on, one after the other; lists are strings or numbers (of `dtype`)."""
    keras.backend.clear_session()
    layer = getattr(L, name)(**options)
    if adapt is not None:
        layer.adapt(np.array(adapt, dtype=dtype) if dtype else adapt)
    entry = {"layer": name, "options": options, "calls": [], "dtype": dtype or "string"}
    if adapt is not None:
        entry["adapt"] = adapt
    for x in calls:
        several = isinstance(x, tuple)
        given = [tf.constant(v) for v in x] if several else tf.constant(x, dtype=dtype or "string")
        y = layer(given)
        entry["calls"].append({"input": list(x) if several else x, "several": several, "result": result(y)})
    if hasattr(layer, "get_vocabulary"):
        entry["vocabulary"] = layer.get_vocabulary()
    if name == "Discretization":
        entry["boundaries"] = layer.bin_boundaries
    CASES.append(entry)


def vectorization():
    column = [[r] for r in REVIEWS]
    case("TextVectorization", {}, [REVIEWS, column, "the cat", ["zzz"]], REVIEWS)
    for standardize in (None, "lower", "strip_punctuation", "lower_and_strip_punctuation"):
        for split in ("whitespace", "character"):
            case("TextVectorization", dict(standardize=standardize, split=split), [REVIEWS], REVIEWS)
    case("TextVectorization", dict(standardize=None, split=None), [WORDS, [[w] for w in WORDS], [WORDS, WORDS]], WORDS)
    case("TextVectorization", dict(split=None, output_sequence_length=2), [[WORDS, WORDS]], WORDS)
    case("TextVectorization", dict(split=None, output_mode="multi_hot"), [[WORDS, ["red"] * 7], [["red"], ["teal"]]], WORDS)
    for length in (2, 5, 12):
        case("TextVectorization", dict(output_sequence_length=length), [REVIEWS, column, "the cat"], REVIEWS)
    for ngrams in (2, 3):
        case("TextVectorization", dict(ngrams=ngrams), [REVIEWS], REVIEWS)
    for most in (3, 6, 100):
        case("TextVectorization", dict(max_tokens=most), [REVIEWS], REVIEWS)
        for mode in ("multi_hot", "count", "tf_idf"):
            case("TextVectorization", dict(max_tokens=most, output_mode=mode), [REVIEWS, column, "the cat the"], REVIEWS)
            case("TextVectorization", dict(max_tokens=most, output_mode=mode, pad_to_max_tokens=True), [REVIEWS], REVIEWS)
    case("TextVectorization", dict(output_mode="count", ngrams=2), [REVIEWS], REVIEWS)
    case("TextVectorization", dict(vocabulary=["cat", "dog", "the"]), [REVIEWS])
    case("TextVectorization", dict(vocabulary=["", "[UNK]", "cat", "dog", "the"]), [REVIEWS])
    case("TextVectorization", dict(vocabulary=["cat", "dog"], output_mode="tf_idf", idf_weights=[0.25, 0.75]), [REVIEWS])


def lookups():
    column = [[w] for w in WORDS]
    for options in ({}, dict(mask_token=""), dict(num_oov_indices=3), dict(num_oov_indices=3, salt=[7, 11]), dict(max_tokens=3),
                    dict(mask_token="", num_oov_indices=2, oov_token="teal")):
        for mode in ("int", "one_hot", "multi_hot", "count", "tf_idf"):
            case("StringLookup", dict(options, output_mode=mode), [WORDS + ["x", "yy"], column, "red", [WORDS, WORDS[::-1]]], WORDS)
    case("StringLookup", dict(num_oov_indices=5, vocabulary=["a"]), [LONG])
    case("StringLookup", dict(num_oov_indices=5, vocabulary=["a"], salt=3), [LONG])
    case("StringLookup", dict(num_oov_indices=0, vocabulary=["a", "b"]), [["a", "b"]])
    case("StringLookup", dict(vocabulary=["a", "b"], output_mode="multi_hot", max_tokens=6, pad_to_max_tokens=True), [[["a", "z"]]])
    numbers = [12, 1138, 42, -5, 12, 0, 42, 42]
    for options in ({}, dict(mask_token=0), dict(num_oov_indices=3), dict(num_oov_indices=4, oov_method="farmhash"),
                    dict(num_oov_indices=4, oov_method="farmhash", salt=5), dict(max_tokens=3)):
        for mode in ("int", "one_hot", "multi_hot", "count", "tf_idf"):
            case("IntegerLookup", dict(options, output_mode=mode), [numbers + [7, -8, 9], [[n] for n in numbers], [numbers, numbers]],
                 numbers, "int64")
    case("IntegerLookup", dict(vocabulary=[12, 36], invert=True), [[[0, 1, 2], [5, 2, 1]]], None, "int64")
    case("StringLookup", dict(vocabulary=["a", "b"], invert=True), [[[0, 1, 2], [5, 2, 1]]], None, "int64")
    case("StringLookup", dict(vocabulary=["a", "b"], invert=True, mask_token=""), [[[0, 1, 2], [5, 2, 3]]], None, "int64")


def hashes():
    for options in (dict(num_bins=13), dict(num_bins=13, salt=133), dict(num_bins=13, salt=[133, 137]), dict(num_bins=1)):
        case("Hashing", options, [LONG + WORDS, [[w] for w in WORDS], "red"])
        case("Hashing", options, [[0, 1, -7, 123456789012, 42], [[3], [4]]], None, "int64")
    for mode in ("one_hot", "multi_hot", "count"):
        case("Hashing", dict(num_bins=4, output_mode=mode), [[WORDS, WORDS[::-1]], [[w] for w in WORDS]])
        case("Hashing", dict(num_bins=4, output_mode=mode, mask_value=""), [[WORDS, WORDS[::-1]], [[w] for w in WORDS]])
    case("Hashing", dict(num_bins=5, mask_value=""), [WORDS])
    case("Hashing", dict(num_bins=5, mask_value=3), [[3, 4, 5, 3]], None, "int32")
    for mode in ("int", "one_hot"):
        case("HashedCrossing", dict(num_bins=5, output_mode=mode), [(WORDS, list(range(7))), (WORDS, WORDS[::-1], list(range(7))),
                                                                   ([[w] for w in WORDS], [[i] for i in range(7)]), ("a", 101)])


def bins():
    values = [[-1.5, 0.0, 0.4], [1.0, 7.5, 2.0]]
    for mode in ("int", "one_hot", "multi_hot", "count"):
        case("Discretization", dict(bin_boundaries=[0.0, 1.0, 2.0], output_mode=mode), [values, [[0.5], [3.0]]], None, "float32")
    data = [(i * 37) % 101 / 7.0 for i in range(500)]
    for count in (2, 4, 7):
        for epsilon in (0.01, 0.1):
            case("Discretization", dict(num_bins=count, epsilon=epsilon), [values], data, "float32")
    for mode in ("one_hot", "multi_hot", "count"):
        case("CategoryEncoding", dict(num_tokens=5, output_mode=mode), [[[0, 1, 1], [4, 4, 4]], [[2], [3]], [1, 4]], None, "int64")


def files():
    keras.backend.clear_session()
    keras.utils.set_random_seed(1)
    vectorize = L.TextVectorization(max_tokens=20, output_sequence_length=6, ngrams=2)
    vectorize.adapt(REVIEWS)
    model = keras.Sequential([keras.Input((1,), dtype="string"), vectorize, L.Embedding(20, 4), L.GlobalAveragePooling1D(), L.Dense(2)])
    model.save(os.path.join(HERE, "keras", "text_model.keras"))
    expected = {"text_model": result(model(tf.constant([[r] for r in REVIEWS])))}
    text_input, number = keras.Input((1,), dtype="string", name="word"), keras.Input((1,), dtype="int64", name="number")
    by_frequency = L.StringLookup(output_mode="tf_idf")
    by_frequency.adapt([w for w in WORDS if w])      # Keras does not read its own vocabulary.txt where "" is last
    parts = [by_frequency(text_input), L.StringLookup(vocabulary=["red", "blue"], output_mode="one_hot", name="given")(text_input),
             L.IntegerLookup(vocabulary=[3, 5], output_mode="one_hot")(number),
             L.HashedCrossing(6, output_mode="one_hot")((text_input, number)), L.Hashing(4, output_mode="one_hot")(text_input)]
    outputs = L.Dense(2)(L.Concatenate()(parts))
    model = keras.Model([text_input, number], outputs)
    model.save(os.path.join(HERE, "keras", "lookups.keras"))
    words, numbers = [["red"], ["teal"], ["x"]], [[3], [4], [5]]
    expected["lookups"] = result(model([tf.constant(words), tf.constant(numbers, dtype="int64")]))
    word, age = keras.Input((), dtype="string", name="word"), keras.Input((1,), name="age")
    column = keras.ops.expand_dims(word, -1)
    known = L.StringLookup(vocabulary=["red", "blue"], mask_token=None, output_mode="multi_hot")
    crossed = L.HashedCrossing(8, output_mode="one_hot")((column, L.Discretization(bin_boundaries=[1.0, 2.0])(age)))
    model = keras.Model([word, age], L.Dense(2)(L.Concatenate()([known(column), crossed, age])))
    model.save(os.path.join(HERE, "keras", "moved_text.keras"))
    expected["moved_text"] = result(model([tf.constant([w for w, in words]), tf.constant(numbers, dtype="float32") / 2]))
    return {"reviews": REVIEWS, "words": words, "numbers": numbers, "expected": expected}


def write(out, entry):
    """The entry in lines, broken between values: a string is one piece."""
    line = "  "
    for piece in re.findall(r'"(?:[^"\\]|\\.)*",?|\S+', entry):
        if len(line) + len(piece) > 135:
            out.write(line.rstrip() + "\n")
            line = "    "
        line += piece + " "
    out.write(line.rstrip() + ",\n")


def write_manifest(name, entries):
    """A manifest is a list of these entries."""
    with open(os.path.join(HERE, "manifest", "preprocessing", name + ".lua"), "w") as out:
        out.write("-- Generated by spec/golden/preprocessing.py with Keras %s and TensorFlow %s. Do not edit.\nreturn {\n"
                  % (keras.__version__, tf.__version__))
        for entry in entries:
            write(out, lua(entry))
        out.write("}\n")


def main():
    vectorization()
    lookups()
    hashes()
    bins()
    for name in sorted({entry["layer"] for entry in CASES}):
        write_manifest(name, [entry for entry in CASES if entry["layer"] == name])
    write_manifest("files", [files()])
    print(len(CASES), "cases")


main()
