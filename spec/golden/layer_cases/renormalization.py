"""Cases of BatchNormalization with renorm: with and without limits, by masks' and other axes' ways of counting, in training."""
from .basics import plain

FIRST_SEED = 97300


def renorm(name, shape=(6, 5), **options):
    return plain("BatchNormalization", "renorm, " + name, shapes=[list(shape)], renorm=True, **options) | {"training": True}


CASES = [
    renorm("no limits"),
    renorm("of images", shape=[3, 4, 5, 6], momentum=0.9, renorm_momentum=0.7),
    renorm("limits of the factor", renorm_clipping={"rmin": 0.9, "rmax": 1.1}),
    renorm("limits of all", shape=[4, 7, 3], renorm_clipping={"rmin": 0.8, "rmax": 0.95, "dmax": 0.05}, epsilon=0.01),
    renorm("limit of the shift 0", renorm_clipping={"dmax": 0.0}),
    renorm("neither scale nor center", shape=[5, 3, 3, 4], scale=False, center=False, renorm_clipping={"rmax": 3.0}),
    renorm("without scale", scale=False),
    renorm("without center", center=False),
    plain("BatchNormalization", "renorm, inference", shapes=[[4, 5]], renorm=True),
]
