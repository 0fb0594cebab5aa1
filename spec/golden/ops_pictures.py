"""More cases of ops.py: functions of tf.image."""
import numpy as np

from ops_cases import Given, Made, Position, Random, case


def picture(*shape):
    return Random(shape, 0, 1, "float32")


def whole_picture(*shape):
    return Random(shape, 0, 256, "uint8")


ONE, SEVERAL = picture(5, 6, 3), picture(2, 4, 5, 3)
for name in "flip_left_right flip_up_down transpose rot90 rgb_to_grayscale rgb_to_yiq yiq_to_rgb rgb_to_yuv yuv_to_rgb " \
            "per_image_standardization total_variation".split():
    for x in (ONE, SEVERAL):
        case("tf.image." + name, x, tolerance=2e-6)
case("tf.image.per_image_standardization", whole_picture(4, 5, 3), gradient=False, tolerance=2e-6)
case("tf.image.per_image_standardization", Given(np.full((3, 4, 3), 7.0), "float32"), gradient=False, tolerance=2e-6)
for k in (-1, 0, 2, 5):
    case("tf.image.rot90", ONE, k, tolerance=1e-6)
for name in ("rgb_to_hsv", "hsv_to_rgb"):
    case("tf.image." + name, ONE, gradient=False, tolerance=2e-6)
case("tf.image.rgb_to_grayscale", whole_picture(4, 5, 3), gradient=False)
case("tf.image.grayscale_to_rgb", picture(2, 3, 4, 1), tolerance=1e-6)
case("tf.image.image_gradients", SEVERAL, tolerance=1e-6)
case("tf.image.sobel_edges", SEVERAL, tolerance=2e-6)

for x in (ONE, whole_picture(2, 4, 5, 3)):
    gradient = x is ONE
    case("tf.image.adjust_brightness", x, 0.25, gradient=gradient, tolerance=2e-6)
    case("tf.image.adjust_contrast", x, 1.7, gradient=False, tolerance=2e-6)
    case("tf.image.adjust_gamma", x, 0.6, 1.2, gradient=False, tolerance=2e-6)
    case("tf.image.adjust_hue", x, 0.3, gradient=False, tolerance=2e-6)
    case("tf.image.adjust_saturation", x, 1.6, gradient=False, tolerance=2e-6)
    case("tf.image.flip_left_right", x, gradient=False)

for x in (ONE, SEVERAL):
    case("tf.image.central_crop", x, 0.6, tolerance=1e-6)
    case("tf.image.crop_to_bounding_box", x, 1, 2, 3, 2, tolerance=1e-6)
    case("tf.image.pad_to_bounding_box", x, 1, 2, 7, 9, tolerance=1e-6)
    for size in ((3, 9), (8, 4), (2, 3), (7, 8)):
        case("tf.image.resize_with_crop_or_pad", x, *size, tolerance=1e-6)
        case("tf.image.resize_with_pad", x, *size, gradient=False, traced=False, tolerance=3e-6)
    case("tf.image.extract_patches", SEVERAL, (1, 2, 3, 1), (1, 1, 2, 1), (1, 1, 1, 1), "VALID", tolerance=1e-6)
case("tf.image.extract_patches", SEVERAL, (1, 2, 2, 1), (1, 2, 2, 1), (1, 1, 1, 1), "SAME", tolerance=1e-6)

case("tf.image.psnr", SEVERAL, SEVERAL, 1.0, gradient=False, tolerance=1e-5)
case("tf.image.psnr", whole_picture(3, 4, 3), whole_picture(3, 4, 3), 255, gradient=False, tolerance=1e-5)
case("tf.image.ssim", picture(2, 12, 13, 3), picture(2, 12, 13, 3), 1.0, gradient=False, tolerance=1e-5)
case("tf.image.ssim", whole_picture(13, 12, 1), whole_picture(13, 12, 1), 255, 7, gradient=False, tolerance=1e-5)


def boxes_of(x):
    """Rows {top, left, bottom, right} of numbers from 0 to 1."""
    low, high = np.minimum(x[..., :2], x[..., 2:]), np.maximum(x[..., :2], x[..., 2:])
    return np.concatenate([low, high], -1).astype("float32")


def boxes(*shape):
    return Made((*shape, 4), boxes_of, 0, 1)


for most, threshold, least in ((3, 0.5, None), (20, 0.2, 0.3), (20, 0.0, None)):
    options = {} if least is None else {"score_threshold": least}
    case("tf.image.non_max_suppression", boxes(20), picture(20), most, threshold, gradient=False, traced=False, positions=(0,), **options)
for shared, options in ((1, {}), (3, {}), (1, {"pad_per_class": True, "score_threshold": 0.4})):
    case("tf.image.combined_non_max_suppression", boxes(2, 12, shared), picture(2, 12, 3), 4, 10, 0.3, gradient=False, traced=False,
         tolerance=1e-6, **options)
for method in ("bilinear", "nearest"):
    for size in ((3, 4), (1, 1)):
        case("tf.image.crop_and_resize", SEVERAL, boxes(3), Position([0, 1, 1]), size, method, gradient=False, traced=False, tolerance=2e-6)
case("tf.image.crop_and_resize", SEVERAL, Given([[-0.2, 0.1, 1.3, 0.8]], "float32"), Position([1]), (4, 3), gradient=False, traced=False,
     extrapolation_value=5.0, tolerance=2e-6)
