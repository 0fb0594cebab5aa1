"""Cases of layers: kernels divided by their largest singular value."""

FIRST_SEED = 92000


def case(name, layer, shape, training=True, **options):
    return {"name": "SpectralNormalization " + name, "layer": "SpectralNormalization", "inputs": [shape], "training": training,
            "options": {"layer": layer, **options}}


def inner(name, **options):
    return {"class": name, "options": options}


CASES = [
    case("of Dense", inner("Dense", units=3), [4, 5]),
    case("of Dense, three iterations", inner("Dense", units=3), [4, 5], power_iterations=3),
    case("of Conv2D", inner("Conv2D", filters=4, kernel_size=3, activation="relu"), [2, 5, 6, 3]),
    case("without training", inner("Dense", units=3), [4, 5], training=False),
]
