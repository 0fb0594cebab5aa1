"""events.py: what TensorBoard finds in the files of events_made.lua, and the bytes that tf.summary writes for the same calls, for
spec/golden/events_spec.lua. Needs tensorflow, tensorboard and a built flowlua (LUA_PATH and FLOWLUA_LIB as scripts/test sets them).

    python spec/golden/events.py >spec/golden/events.lua
"""
import glob
import os
import subprocess
import sys
import tempfile

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf
from tensorboard.backend.event_processing import event_accumulator, event_file_loader


def make(folder):
    with tf.summary.create_file_writer(folder).as_default():
        for step in range(25):
            tf.summary.scalar("loss", np.float32(1 / (step + 1)), step * 10)
        tf.summary.scalar("not a number", float("nan"), 1)
        tf.summary.scalar("large", 3e38, 2**40)
        values = np.array([((i * 7919) % 1000) ** 2 / 1e6 - 0.25 for i in range(1, 1001)], "float32")
        tf.summary.histogram("weights", values, 3)
        tf.summary.histogram("few buckets", np.array([1, 2, 3, 4, 5], "int32"), 4, buckets=4)
        tf.summary.histogram("one value", np.full([7], 2.5, "float32"), 5)
        tf.summary.histogram("nothing", np.zeros([0], "float32"), 6, buckets=3)
        tf.summary.text("note", "some *Markdown* and ümlauts", 7)
        tf.summary.image("pictures", (np.arange(72, dtype="float32") / 72).reshape(2, 3, 4, 3), 8)
        tf.summary.image("grey", (np.arange(12) * 20).astype("uint8").reshape(1, 3, 4, 1), 9)


def summaries(folder):
    (path,) = glob.glob(folder + "/*tfevents*")
    return [event for event in event_file_loader.RawEventFileLoader(path).Load()]


def parsed(folder):
    events = [tf.compat.v1.Event.FromString(raw) for raw in summaries(folder)]
    return [(event.step, event.summary.value[0]) for event in events if event.HasField("summary")]


def quoted(text):
    return '"' + "".join(chr(c) if 32 <= c < 127 and chr(c) not in '"\\' else f"\\{c:03d}" for c in text) + '"'


ours, theirs = tempfile.mkdtemp(), tempfile.mkdtemp()
make(theirs)
subprocess.run(["luajit", os.path.join(os.path.dirname(__file__), "events_made.lua"), ours], check=True)

# What TensorBoard reads must be the same, whoever wrote it.
a, b = parsed(ours), parsed(theirs)
assert len(a) == len(b), (len(a), len(b))
for (step_a, value_a), (step_b, value_b) in zip(a, b):
    assert (step_a, value_a.tag) == (step_b, value_b.tag)
    plugin = value_a.metadata.plugin_data.plugin_name
    assert plugin == value_b.metadata.plugin_data.plugin_name, value_a.tag
    x, y = tf.make_ndarray(value_a.tensor), tf.make_ndarray(value_b.tensor)
    assert x.shape == y.shape and x.dtype == y.dtype, value_a.tag
    if plugin == "images":
        assert list(x[:2]) == list(y[:2])
        for png_a, png_b in zip(x[2:], y[2:]):
            assert (tf.image.decode_png(png_a).numpy() == tf.image.decode_png(png_b).numpy()).all(), value_a.tag
    elif plugin == "text":
        assert x == y
    else:
        np.testing.assert_allclose(x, y, rtol=1e-12, err_msg=value_a.tag)
found = event_accumulator.EventAccumulator(ours, size_guidance={"tensors": 0})
found.Reload()
tags = found.Tags()
assert len(tags["tensors"]) == 10, tags
assert [event.step for event in found.Tensors("loss")] == list(range(0, 250, 10))
print("TensorBoard reads the same from both", file=sys.stderr)

print(f"-- events.lua: made by events.py: the summaries as TensorFlow {tf.__version__} writes them: step, tag, plugin, bytes of the Value;")
print("-- of pictures, whose compression differs, the pixels instead.")
print("return {")
for step, value in b:
    plugin = value.metadata.plugin_data.plugin_name
    content = value.SerializeToString(deterministic=True)
    if plugin == "images":
        content = b"".join(tf.image.decode_png(png).numpy().tobytes() for png in tf.make_ndarray(value.tensor)[2:])
    text = quoted(content)
    print(f"  {{ {step}, {quoted(value.tag.encode())}, {quoted(plugin.encode())},")
    at = 0
    while at < len(text):
        end = min(at + 130, len(text))
        while end < len(text) and "\\" in text[max(end - 3, at):end]:
            end -= 1
        piece = text[at:end]
        print("    " + ('"' if at else "") + piece + ("" if end == len(text) else '" ..'))
        at = end
    print("  },")
print("}")
