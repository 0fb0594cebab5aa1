"""scaling_tensorflow.py KIND STEPS: TensorFlow's side of scaling.py, which says what a job prints. KIND: one, or workers: one of the
processes of MultiWorkerMirroredStrategy with RING, which finds TF_CONFIG in its environment. Keras 3 cannot fit under that strategy: this
is the custom loop of TensorFlow's tutorial, whose step is a tf.function."""
import json
import os
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"
import keras
import numpy as np
import tensorflow as tf
from keras import layers

kind, steps = sys.argv[1], int(sys.argv[2])
BATCH = 64
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)
if kind == "workers":
    options = tf.distribute.experimental.CommunicationOptions(implementation=tf.distribute.experimental.CommunicationImplementation.RING)
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    chief = json.loads(os.environ["TF_CONFIG"])["task"]["index"] == 0
else:
    strategy, chief = tf.distribute.get_strategy(), True
replicas = strategy.num_replicas_in_sync
global_batch = BATCH * replicas

with strategy.scope():
    keras.utils.set_random_seed(1)
    model = keras.Sequential([layers.Input((28, 28)), layers.Reshape((28, 28, 1)), layers.Conv2D(32, 3, activation="relu"),
                              layers.Flatten(), layers.Dense(128, activation="relu"), layers.Dense(10)])
    optimizer = keras.optimizers.SGD(0.001)
    optimizer.build(model.trainable_variables)
    hits = tf.Variable(0, dtype=tf.int64, trainable=False, synchronization=tf.VariableSynchronization.ON_READ,
                       aggregation=tf.VariableAggregation.SUM)

random = np.random.default_rng(1)


def dataset(context):
    x = random.random((100 * BATCH, 28, 28), dtype="float32")
    y = random.integers(0, 10, 100 * BATCH)
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH).cache().repeat().prefetch(2)


batches = iter(strategy.distribute_datasets_from_function(dataset))


def replica_step(x, y):
    with tf.GradientTape() as tape:
        logits = model(x, training=True)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.cast(y, tf.int32), logits)
        loss = tf.nn.compute_average_loss(losses, global_batch_size=global_batch)
    variables = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    hits.assign_add(tf.reduce_sum(tf.cast(tf.argmax(logits, 1) == tf.cast(y, tf.int64), tf.int64)))


@tf.function
def train(iterator, count):
    for _ in tf.range(count):
        strategy.run(replica_step, args=next(iterator))


def run(count):
    train(batches, tf.constant(count))
    return hits.read_value().numpy()                # under the strategy a sum over the workers: all have ended


run(1)
if chief:
    print("first", flush=True)
run(20)
start = time.perf_counter()
run(steps)
if chief:
    print("rate %d %.6f" % (steps * global_batch, time.perf_counter() - start), flush=True)
