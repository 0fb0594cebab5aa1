"""board.py: event files as TensorFlow 2 and TensorFlow 1 write them, for spec/golden/board_spec.lua. Needs
tensorflow; PyTorch writes the messages of TensorFlow 1.

    python spec/golden/board.py spec/golden/board
"""
import glob
import os
import shutil
import sys

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

folder = sys.argv[1]
shutil.rmtree(folder, ignore_errors=True)


def rename(run):
    """One name for every machine and time."""
    (path,) = glob.glob(f"{folder}/{run}/*tfevents*")
    os.rename(path, f"{folder}/{run}/events.out.tfevents.1")


with tf.summary.create_file_writer(folder + "/two").as_default():
    for step in range(5):
        tf.summary.scalar("loss", 1 / (step + 1), step * 10)
    tf.summary.scalar("loss", float("nan"), 50)
    tf.summary.histogram("weights", np.array([0, 1, 1, 2, 2, 2, 2, 4], "float32"), 3, buckets=4)
    tf.summary.histogram("zeros", np.zeros([0], "float32"), 4, buckets=3)
    tf.summary.image("picture", np.arange(24, dtype="uint8").reshape(2, 2, 2, 3) * 10, 7)
    tf.summary.text("note", "some *Markdown* and ümlauts", 8)
rename("two")

with tf.Graph().as_default():
    writer = tf.compat.v1.summary.FileWriter(folder + "/one")
for step in range(3):
    summary = tf.compat.v1.Summary()
    summary.value.add(tag="loss", simple_value=2.0 - step)
    summary.value.add(tag="accuracy", simple_value=0.25 * step)
    writer.add_summary(summary, step)
summary = tf.compat.v1.Summary()
histogram = summary.value.add(tag="weights").histo
histogram.min, histogram.max, histogram.num = -1.0, 3.0, 6
histogram.bucket_limit.extend([-0.5, 0.0, 1.0, 1.7976931348623157e308])
histogram.bucket.extend([1.0, 0.0, 2.0, 3.0])
image = summary.value.add(tag="picture").image
image.height, image.width, image.colorspace = 2, 3, 1
image.encoded_image_string = tf.io.encode_png(np.full([2, 3, 1], 128, "uint8")).numpy()
writer.add_summary(summary, 9)
writer.close()
rename("one")
