"""Cases of layers that change pictures, with factors that leave nothing to chance: [f, f]. What chance does is checked by
spec/unit/image_layers_spec.lua, as is Equalization,
which Keras cannot call on a symbolic tensor. Gradients are not compared: those of TensorFlow leave out what is outside of a picture, and
what comes through a largest channel."""

FIRST_SEED = 91000

IMAGES, WIDE = [2, 6, 7, 3], [2, 9, 12, 3]


def case(layer, name="", shape=IMAGES, range=(0.0, 255.0), **options):
    return {"name": (layer + " " + name).strip(), "layer": layer, "options": options, "inputs": [shape], "float32": True,
            "training": True, "range": range, "gradients": False}


def unit(layer, name="from 0 to 1", **options):
    return case(layer, name, range=(0.0, 1.0), value_range=[0.0, 1.0], **options)


def moved(name, **options):
    return case("RandomTranslation", name, height_factor=[0.2, 0.2], width_factor=[-0.3, -0.3], **options)


CASES = [
    case("RandomBrightness", factor=[0.2, 0.2]),
    unit("RandomBrightness", factor=[-0.3, -0.3]),
    case("RandomColorDegeneration", factor=[0.4, 0.4]),
    case("RandomGrayscale", factor=1.0),
    case("RandomInvert", factor=[1.0, 1.0]),
    unit("RandomInvert", factor=[1.0, 1.0]),
    case("RandomHue", factor=[1.0, 1.0]),      # half a turn either way
    unit("RandomHue", factor=[1.0, 1.0]),
    unit("RandomSaturation", factor=[0.4, 0.4]),
    unit("RandomSaturation", "more of it", factor=[0.7, 0.7]),
    case("RandomSharpness", factor=[0.9, 0.9]),
    case("RandomSharpness", "less of it", factor=[0.2, 0.2]),
    case("RandomPosterization", factor=[3, 3]),
    unit("RandomPosterization", factor=[1, 1]),
    case("Solarization", addition_factor=[0.0, 0.0], threshold_factor=[0.0, 0.0]),
    case("AutoContrast", range=(30.0, 200.0)),
    unit("AutoContrast"),
    case("RandomGaussianBlur", factor=[1.0, 1.0], sigma=[0.8, 0.8]),
    case("RandomGaussianBlur", "five pixels", factor=[1.0, 1.0], kernel_size=[5, 5], sigma=[1.0, 1.0]),
    case("RandomColorJitter", brightness_factor=[0.1, 0.1], hue_factor=[0.0, 0.0]),
    unit("RandomColorJitter", brightness_factor=[-0.1, -0.1], saturation_factor=[0.4, 0.4]),
    moved("reflect"),
    moved("wrap", fill_mode="wrap"),
    moved("constant", fill_mode="constant", fill_value=7.0),
    moved("nearest", fill_mode="nearest", interpolation="nearest"),
    case("RandomShear", "by nothing", x_factor=[0.0, 0.0], y_factor=[0.0, 0.0]),
    case("RandomPerspective", "of no scale", factor=[1.0, 1.0], scale=0.0),
    case("RandomErasing", "of all", factor=[1.0, 1.0], scale=[1.0, 1.0], fill_value=12.0),
    case("RandomErasing", "in colour", factor=[1.0, 1.0], scale=[1.0, 1.0], fill_value=[1.0, 300.0, 3.0]),
    case("RandomElasticTransform", "of no scale", factor=[1.0, 1.0], scale=[0.0, 0.0]),
    case("ContrastLimitedAdaptiveHistogramEqualization", shape=WIDE, tile_grid_size=[3, 4]),
    case("ContrastLimitedAdaptiveHistogramEqualization", "of uneven tiles", shape=WIDE, tile_grid_size=[2, 5], clip_limit=2.0),
    case("ContrastLimitedAdaptiveHistogramEqualization", "without a limit", shape=WIDE, tile_grid_size=[2, 2], clip_limit=0.0),
    case("RandomCrop", "of less", height=8, width=5),
    case("RandomCrop", "as wide", height=4, width=7),
]
