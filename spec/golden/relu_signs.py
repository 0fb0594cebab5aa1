"""What one relu whose input is almost zero does to the training case "mnist, SGD": float64, once as it is and once with the sign of that
input turned in one step. numpy alone; for training_spec.lua, which tells why.

    python3 spec/golden/relu_signs.py
"""
import os
import re

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
NAME, STEPS, BATCH, RATE, SIDE, FILTERS = "mnist, SGD", 20, 32, 0.05, 26, 32
TURNED = 2      # the step, from 0, with the input nearest to zero


def unit(count, seed):
    """As in generate.py."""
    mask = np.uint64(0xFFFFFFFF)
    x = (np.uint64(seed * 668265263) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(2654435761)) & mask
    x ^= (x << np.uint64(13)) & mask
    x ^= x >> np.uint64(17)
    x ^= (x << np.uint64(5)) & mask
    return x.astype(np.float64) / 4294967296.0


def read_case():
    """Images, labels, weights and Keras' losses of the case, from manifest/training.lua."""
    with open(os.path.join(HERE, "manifest", "training.lua")) as file:
        line = next(line for line in file if '{ name = "%s"' % NAME in line)
    tensors = []
    for shape, seed, rest in re.findall(r"{ shape = { ([\d, ]+) }, seed = (\d+), ([^}]+) }", line):
        shape, rest = [int(size) for size in shape.split(",")], dict(item.split(" = ") for item in rest.split(", "))
        u = unit(int(np.prod(shape)), int(seed)).reshape(shape)
        if "classes" in rest:
            tensors.append(np.floor(u * int(rest["classes"])).astype(int))
        else:
            low, high = float(rest["low"]), float(rest["high"])
            tensors.append((low + u * (high - low)).astype(np.float32).astype(np.float64))
    losses = [float(loss) for loss in re.search(r"losses = { ([^}]*) }", line).group(1).split(",")]
    return tensors[0], tensors[1], tensors[2:], losses


def train_step(weights, images, labels, turned):
    """Loss, new weights and the input of the first relu that is nearest to zero, whose sign is turned if that is asked for."""
    count = len(labels)
    patches = np.stack([images[:, i:i + SIDE, j:j + SIDE] for i in range(3) for j in range(3)], -1)
    z = patches @ weights[0].reshape(9, FILTERS) + weights[1]
    passes, nearest = z > 0, np.unravel_index(np.abs(z).argmin(), z.shape)
    if turned:
        passes[nearest] = not passes[nearest]
    hidden = (z * passes).reshape(count, -1)
    z_hidden = hidden @ weights[2] + weights[3]
    last = np.maximum(z_hidden, 0)
    logits = last @ weights[4] + weights[5]
    p = np.exp(logits - logits.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    loss = -np.log(p[np.arange(count), labels]).mean()
    g = p
    g[np.arange(count), labels] -= 1
    g /= count
    g_hidden = (g @ weights[4].T) * (z_hidden > 0)
    g_image = (g_hidden @ weights[2].T).reshape(z.shape) * passes
    kernel = (patches.reshape(-1, 9).T @ g_image.reshape(-1, FILTERS)).reshape(weights[0].shape)
    gradients = [kernel, g_image.sum((0, 1, 2)), hidden.T @ g_hidden, g_hidden.sum(0), last.T @ g, g.sum(0)]
    return loss, [w - RATE * d for w, d in zip(weights, gradients)], z[nearest]


def main():
    images, labels, weights, losses = read_case()
    plain = turned = weights
    for step in range(STEPS):
        rows = slice(step * BATCH % len(labels), step * BATCH % len(labels) + BATCH)
        loss, plain, nearest = train_step(plain, images[rows], labels[rows], False)
        other, turned, _ = train_step(turned, images[rows], labels[rows], step == TURNED)
        print("step %2d: float64 %.8f (Keras %+.0e), input nearest to zero %+.1e; with the sign turned in step %d %.8f (%+.1e)"
              % (step + 1, loss, loss - losses[step], nearest, TURNED + 1, other, other - loss))


if __name__ == "__main__":
    main()
