"""Models with their own steps under compile and fit, for own_steps_spec.lua. See generate.py:

    /tmp/keras/bin/python spec/golden/own_steps.py

writes own_steps.lua: what an autoencoder with a KL term, a GAN, a WGAN with gradient penalty and a distilled student of Keras report in
five batches, of which the last is smaller, and their weights then. Noise is data, so that both sides have the same.
"""
import os
import textwrap

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np
import tensorflow as tf
from keras import layers

HERE = os.path.dirname(os.path.abspath(__file__))
ROWS, BATCH = 18, 4


def wave(shape, step, shift=0.0):
    return np.sin(step * np.arange(np.prod(shape)) + shift).astype("float32").reshape(shape)


def start(model, shift):
    model.set_weights([0.5 * wave(w.shape, 1.7, shift + i) for i, w in enumerate(model.get_weights())])


def dense(sizes, last=None):
    hidden = [layers.Dense(n, activation="tanh") for n in sizes[1:-1]]
    model = keras.Sequential([layers.Input((sizes[0],))] + hidden + [layers.Dense(sizes[-1], activation=last)])
    start(model, sum(sizes))
    return model


def update(optimizer, tape, loss, variables):
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))


class VAE(keras.Model):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = dense([6, 8, 4]), dense([2, 8, 6], "sigmoid")
        self.built = True

    def train_step(self, data):
        x, noise = data
        with tf.GradientTape() as tape:
            mean, log_var = tf.split(self.encoder(x), 2, axis=1)
            z = mean + tf.exp(0.5 * log_var) * noise
            reconstruction = tf.reduce_mean(tf.reduce_sum(tf.square(x - self.decoder(z)), axis=1))
            kl = tf.reduce_mean(tf.reduce_sum(-0.5 * (1 + log_var - tf.square(mean) - tf.exp(log_var)), axis=1))
            total = reconstruction + kl
        update(self.optimizer, tape, total, self.trainable_weights)
        return {"reconstruction": reconstruction, "kl": kl}


class GAN(keras.Model):
    def __init__(self):
        super().__init__()
        self.generator, self.discriminator = dense([3, 8, 6], "sigmoid"), dense([6, 8, 1])
        self.built = True

    def compile(self, d_optimizer, g_optimizer):
        super().compile()
        self.d_optimizer, self.g_optimizer = d_optimizer, g_optimizer
        self.loss_fn = keras.losses.BinaryCrossentropy(from_logits=True)

    def train_step(self, data):
        x, noise, more = data
        rows = tf.shape(x)[0]
        both = tf.concat([self.generator(noise), x], axis=0)
        labels = tf.concat([tf.ones((rows, 1)), tf.zeros((rows, 1))], axis=0)
        with tf.GradientTape() as tape:
            d_loss = self.loss_fn(labels, self.discriminator(both))
        update(self.d_optimizer, tape, d_loss, self.discriminator.trainable_weights)
        with tf.GradientTape() as tape:
            g_loss = self.loss_fn(tf.zeros((rows, 1)), self.discriminator(self.generator(more)))
        update(self.g_optimizer, tape, g_loss, self.generator.trainable_weights)
        return {"d_loss": d_loss, "g_loss": g_loss}


class WGAN(GAN):
    def gradient_penalty(self, real, fake, alpha):
        mixed = real + alpha * (fake - real)
        with tf.GradientTape() as tape:
            tape.watch(mixed)
            judged = self.discriminator(mixed, training=True)
        gradient = tape.gradient(judged, [mixed])[0]
        norm = tf.sqrt(tf.reduce_sum(tf.square(gradient), axis=1))
        return tf.reduce_mean((norm - 1.0) ** 2)

    def train_step(self, data):
        x, noise, more, alpha = data
        for z in (noise, more):
            with tf.GradientTape() as tape:
                fake = self.generator(z, training=True)
                cost = tf.reduce_mean(self.discriminator(fake, training=True)) - tf.reduce_mean(self.discriminator(x, training=True))
                d_loss = cost + 10.0 * self.gradient_penalty(x, fake, alpha)
            update(self.d_optimizer, tape, d_loss, self.discriminator.trainable_weights)
        with tf.GradientTape() as tape:
            g_loss = -tf.reduce_mean(self.discriminator(self.generator(noise, training=True), training=True))
        update(self.g_optimizer, tape, g_loss, self.generator.trainable_weights)
        return {"d_loss": d_loss, "g_loss": g_loss}


class Distiller(keras.Model):
    def __init__(self):
        super().__init__()
        self.teacher, self.student = dense([6, 12, 3]), dense([6, 4, 3])
        self.teacher.trainable = False
        self.built = True

    def compile(self, optimizer, metrics, temperature, alpha):
        super().compile(optimizer=optimizer, metrics=metrics)
        self.temperature, self.alpha = temperature, alpha
        self.student_loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.distillation_loss_fn = keras.losses.KLDivergence()

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        soft = [tf.nn.softmax(logits / self.temperature, axis=1) for logits in (self.teacher(x, training=False), y_pred)]
        distilled = self.distillation_loss_fn(*soft) * self.temperature**2
        return self.alpha * self.student_loss_fn(y, y_pred) + (1 - self.alpha) * distilled

    def call(self, x):
        return self.student(x)


def adam(rate=0.02):
    return keras.optimizers.Adam(rate)


def run(model, *arrays):
    seen = []
    data = tf.data.Dataset.from_tensor_slices(arrays).batch(BATCH)
    note = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: seen.append({k: float(v) for k, v in logs.items()}))
    model.fit(data, verbose=0, callbacks=[note])
    names = ("encoder", "decoder", "generator", "discriminator", "student")
    parts = [getattr(model, name) for name in names if getattr(model, name, None)]
    weights = [w.ravel().tolist() for part in parts for w in part.get_weights()]
    return {"logs": seen, "weights": weights}


def text(value):
    if isinstance(value, dict):
        return "{ " + ", ".join("%s = %s" % (key, text(entry)) for key, entry in value.items()) + " }"
    return "{ " + ", ".join(map(text, value)) + " }" if isinstance(value, list) else "%.9g" % value


def main():
    x = 0.5 + 0.5 * wave((ROWS, 6), 0.37)
    noise, more, alpha = wave((ROWS, 3), 0.91), wave((ROWS, 3), 1.31), 0.5 + 0.5 * wave((ROWS, 1), 0.53)
    found = {}
    vae = VAE()
    vae.compile(optimizer=adam())
    found["vae"] = run(vae, x, noise[:, :2])
    for name, make, arrays in (("gan", GAN, (x, noise, more)), ("wgan", WGAN, (x, noise, more, alpha))):
        gan = make()
        gan.compile(adam(), adam(0.01))
        found[name] = run(gan, *arrays)
    distiller = Distiller()
    distiller.compile(adam(), ["accuracy"], 3.0, 0.1)
    found["distiller"] = run(distiller, x, (np.arange(ROWS) % 3).astype("int32"))
    with open(os.path.join(HERE, "own_steps.lua"), "w") as file:
        file.write("-- Generated by spec/golden/own_steps.py with Keras %s. Do not edit.\n" % keras.__version__)
        file.write("\n".join(textwrap.wrap("return " + text(found), 138, subsequent_indent="  ", break_long_words=False)) + "\n")


if __name__ == "__main__":
    main()
