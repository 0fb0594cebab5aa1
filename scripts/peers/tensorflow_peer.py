"""tensorflow_peer.py NET MODE SECONDS THREADS: TensorFlow's side of compare.py, which describes the conversation."""
import sys

import numpy as np

import tensorflow_nets as nets                      # before TensorFlow: it chooses Keras' back end
import tensorflow as tf
from conversation import BATCHES, answer, one_by_one

net, mode, seconds, threads = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
tf.config.threading.set_intra_op_parallelism_threads(threads)
if mode == "train-bfloat16":
    tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
model, shape, classes, batch = nets.NETS[net]()
rows = batch * BATCHES.get(net, 20)
x = nets.data(net, rows, shape)
times = []
predict = tf.function(lambda images: model(images, training=False))

if mode.startswith("train"):
    y = np.random.default_rng(2).integers(0, classes, rows) if classes else x
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(batch).cache().prefetch(2)

    def work(passes):
        model.fit(data, epochs=passes, shuffle=False, verbose=0)
elif mode == "predict1":
    ones = [tf.constant(x[i:i + 1]) for i in range(min(rows, 64))]
    work = one_by_one(lambda image: predict(image).numpy(), ones, rows, times)
else:
    # Faster than model.predict: a compiled call of the model for each batch, which is there as a tensor.
    batches = [tf.constant(x[first:first + 32]) for first in range(0, rows, 32)]

    def work(passes):
        for _ in range(passes):
            tf.concat([predict(images) for images in batches], 0).numpy()

answer(work, rows, seconds, times)
