"""Cases of layers: pooling to a number of windows, which divide an axis evenly or overlap by one.

Largest values to {4, 1} are left out: TensorFlow's gradient has numbers there that nobody has written (3e32)."""
from .basics import plain

FIRST_SEED = 86000

STEPS, IMAGES, VOLUME = [2, 7, 3], [2, 6, 7, 3], [2, 4, 5, 6, 2]


def cases_of(kind):
    return [
        plain("Adaptive%sPooling1D" % kind, shapes=[STEPS], float32=True, output_size=3),
        plain("Adaptive%sPooling1D" % kind, "as many as steps", shapes=[STEPS], float32=True, output_size=7),
        plain("Adaptive%sPooling2D" % kind, shapes=[IMAGES], float32=True, output_size=3),
        plain("Adaptive%sPooling2D" % kind, "two sizes", shapes=[IMAGES], float32=True,
              output_size=[4, 1] if kind == "Average" else [2, 3]),
        plain("Adaptive%sPooling3D" % kind, shapes=[VOLUME], float32=True, output_size=[3, 2, 4]),
    ]


CASES = cases_of("Average") + cases_of("Max")
