"""A model that holds models which prepare data, as Keras writes it: each looks words up and embeds them, and is one layer of the graph.

    python spec/golden/prepared_parts.py

writes prepared_parts.keras and prepared_parts.npz: what it predicts, by the names of its layers.
"""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np
import tensorflow as tf
from keras import layers

FOLDER = os.path.dirname(os.path.abspath(__file__))
keras.utils.set_random_seed(1)


def encoder(words, name):
    lookup = layers.StringLookup(vocabulary=words, mask_token=None)
    return keras.Sequential([lookup, layers.Embedding(len(words) + 1, 3)], name=name)


user, other = keras.Input((), dtype="string", name="user"), keras.Input((), dtype="string", name="other")
film, age = keras.Input((), dtype="string", name="film"), keras.Input((1,), name="age")
user_encoder = encoder(["ann", "bob"], "user_encoder")
people = layers.Concatenate(name="people")([user_encoder(user), user_encoder(other)])
inner = keras.Model([film, age], layers.Concatenate()([encoder(["up", "her", "brazil"], "film_encoder")(film), age]), name="film_and_age")
outputs = layers.Dense(2, name="score")(layers.Concatenate(name="all")([people, inner([film, age])]))
model = keras.Model([user, other, film, age], outputs, name="recommender")
model.save(os.path.join(FOLDER, "prepared_parts.keras"))
given = [tf.constant(["ann", "bob", "eve"]), tf.constant(["bob", "bob", "ann"]), tf.constant(["up", "brazil", "jaws"]),
         np.array([[0.5], [1.5], [-1]], "float32")]
np.savez(os.path.join(FOLDER, "prepared_parts.npz"), predicted=model.predict(given, verbose=0))
print([layer.name for layer in model.layers])
