"""TFRecord files and tf.train.Examples as TensorFlow writes them, and TensorFlow as the reader of ours.

    /tmp/keras/bin/python spec/golden/records.py           writes records/*.tfrecord
    /tmp/keras/bin/python spec/golden/records.py check     has `luajit` write records and reads them with TensorFlow

records/plain.tfrecord, gzip.tfrecord and zlib.tfrecord hold the same records: no bytes, "hello", 300 times 0..255, "end".
records/examples.tfrecord holds the Examples of `EXAMPLES`, serialized deterministically; spec/c/test_record.c writes the same and
compares byte by byte. records/unpacked.tfrecord holds one Example in the wire format's other spellings.
"""
import os
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))
RECORDS = [b"", b"hello", bytes(range(256)) * 300, b"end"]
EXAMPLES = [
    {"label": [7]},
    {"xs": [1.5, -2.25, 0.0], "label": [-1, 2**63 - 1, -2**63, 300], "image": [b"\x00\xff\x89PNG"], "z": [b"", b"two"]},
    {},
    {"empty": [], "Name": [b"x" * 200]},
]
SPELLINGS = ["", "GZIP", "ZLIB"]


def feature(values):
    if values and isinstance(values[0], bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if values and isinstance(values[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def example(features):
    message = tf.train.Example(features=tf.train.Features(feature={name: feature(v) for name, v in features.items()}))
    return message.SerializeToString(deterministic=True)


def delimited(number, content):
    assert len(content) < 128
    return bytes([number << 3 | 2, len(content)]) + content


def unpacked():
    """{n = {5, 300} once each in its own field, x = {1.0, 2.0} packed and unpacked, s = {"a", "b"}}, the map's values before
    their keys, a kind that a later one replaces, a name that comes twice, and fields that nobody knows."""
    integers = delimited(2, delimited(3, b"\x08\x05\x08\xac\x02")) + delimited(1, b"n")
    replaced = delimited(2, delimited(3, b"\x08\x01") + delimited(1, delimited(1, b"a")) + delimited(1, delimited(1, b"b")))
    floats = delimited(2, b"\x78\x2a" + delimited(2, delimited(1, b"\x00\x00\x80\x3f") + b"\x0d\x00\x00\x00\x40"))
    twice = delimited(1, b"n") + delimited(2, delimited(3, b"\x08\x09"))
    unknown = b"\x78\x2a" + delimited(14, b"what") + b"\x7d\x01\x02\x03\x04" + b"\x79" + bytes(8)
    first = delimited(1, delimited(1, twice) + delimited(1, integers) + unknown)
    second = delimited(1, delimited(1, delimited(1, b"x") + floats) + delimited(1, delimited(1, b"s") + replaced))
    return unknown + first + second


def write(name, records, compression=""):
    with tf.io.TFRecordWriter(os.path.join(HERE, "records", name), compression) as writer:
        for record in records:
            writer.write(record)


def generate():
    os.makedirs(os.path.join(HERE, "records"), exist_ok=True)
    for name, compression in zip(["plain", "gzip", "zlib"], SPELLINGS):
        write(name + ".tfrecord", RECORDS, compression)
    write("examples.tfrecord", [example(e) for e in EXAMPLES])
    odd = unpacked()
    parsed = tf.train.Example.FromString(odd).features.feature
    assert list(parsed["n"].int64_list.value) == [5, 300] and list(parsed["x"].float_list.value) == [1.0, 2.0]
    assert list(parsed["s"].bytes_list.value) == [b"a", b"b"]
    write("unpacked.tfrecord", [odd])


WRITE = """
local flow = require "flow"
local writer = flow.data.TFRecordWriter(arg[1], { compression_type = arg[2] })
writer:write("")  writer:write("hello")
writer:write_example { image = "\\0\\255bytes", label = 7, xs = { 1.5, 2 }, both = { "a", "b" }, whole = { 1, -2 } }
writer:close()
"""


def check():
    """Every compression: what flowlua writes is what TensorFlow reads."""
    expected = {"image": [b"\x00\xffbytes"], "label": [7], "xs": [1.5, 2.0], "both": [b"a", b"b"], "whole": [1, -2]}
    root = os.path.dirname(os.path.dirname(HERE))
    paths = ";".join(os.path.join(root, "lua", p) for p in ("?.lua", "?/init.lua")) + ";;"
    with tempfile.TemporaryDirectory() as folder:
        script, path = os.path.join(folder, "write.lua"), os.path.join(folder, "records")
        with open(script, "w") as file:
            file.write(WRITE)
        for compression in SPELLINGS:
            subprocess.run(["luajit", script, path, compression], check=True, env=dict(os.environ, LUA_PATH=paths))
            found = [r.numpy() for r in tf.data.TFRecordDataset(path, compression)]
            assert found == [b"", b"hello", example(expected)], (compression, found)
            print("%-5s %d records agree" % (compression or "plain", len(found)))


if __name__ == "__main__":
    check() if sys.argv[1:] == ["check"] else generate()
