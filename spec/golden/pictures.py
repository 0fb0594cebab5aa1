"""Golden pictures: a folder as users have them, and what Keras' image_dataset_from_directory makes of it.

    python3 -m venv /tmp/keras && /tmp/keras/bin/pip install tensorflow-cpu pillow
    /tmp/keras/bin/python spec/golden/pictures.py

writes pictures/ (the folder), pictures.lua (order of files, splits, labels, and where the pixels are) and values/pictures.npy.
"""
import os
import shutil
import struct
import sys
import zlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"
import keras
import numpy as np
import tensorflow as tf
from PIL import Image

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "pictures")


def draw(height, width, channels, number):
    """Slopes, a disc and some noise: smooth enough for JPEG, with no two pictures alike."""
    rng = np.random.RandomState(number)
    y, x = np.mgrid[0:height, 0:width]
    picture = np.zeros((height, width, channels))
    for c in range(channels):
        angle = rng.uniform(0, 2 * np.pi)
        slope = (np.cos(angle) * x / width + np.sin(angle) * y / height) * 100 + rng.uniform(60, 190)
        disc = (x - width * rng.uniform(.3, .7)) ** 2 + (y - height * rng.uniform(.3, .7)) ** 2 < (min(height, width) / 4) ** 2
        picture[:, :, c] = slope + disc * rng.uniform(-60, 60)
    return np.clip(picture + rng.normal(0, 3, picture.shape), 0, 255).astype(np.uint8)


def write(path, contents):
    path = os.path.join(FOLDER, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(contents)


def by_pillow(path, picture, mode, **options):
    path = os.path.join(FOLDER, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    Image.fromarray(picture.squeeze(), mode).save(path, **options)


def interlaced(picture):
    """An 8-bit RGB PNG by Adam7 (ISO/IEC 15948, section 8.2), which Pillow and TensorFlow read but do not write."""
    raw = b""
    for left, top, right, down in [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]:
        part = picture[top::down, left::right]
        if part.size:
            raw += b"".join(b"\0" + row.tobytes() for row in part)
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    header = struct.pack(">IIBBBBB", picture.shape[1], picture.shape[0], 8, 2, 0, 0, 1)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")


def make_folder():
    shutil.rmtree(FOLDER, ignore_errors=True)
    jpeg = lambda *size, **options: tf.io.encode_jpeg(draw(*size), quality=90, **options).numpy()
    write("daisy/b.jpg", jpeg(20, 30, 3, 1))
    write("daisy/A.JPG", jpeg(33, 17, 3, 2))
    write("daisy/with two spaces.jpeg", jpeg(24, 24, 3, 3, progressive=True))
    write("daisy/a-notes/part.png", tf.io.encode_png(draw(10, 14, 3, 4)).numpy())
    write("daisy/a/deep/er/grey.png", tf.io.encode_png(draw(15, 9, 1, 5)).numpy())
    write("daisy/a/z.Png", tf.io.encode_png(draw(12, 10, 3, 6)).numpy())
    write("daisy/grey.jpg", jpeg(19, 23, 1, 7))
    write("daisy/read me.txt", b"not a picture\n")
    write("daisy/.hidden.png", tf.io.encode_png(draw(8, 8, 3, 8)).numpy())
    write("Rose/clear.png", tf.io.encode_png(draw(16, 20, 4, 9)).numpy())
    write("Rose/deep.png", tf.io.encode_png(draw(11, 13, 3, 10).astype(np.uint16) * 256 + 129).numpy())
    write("Rose/none.png.bak", b"also no picture\n")
    by_pillow("Rose/windows.bmp", draw(9, 21, 3, 11), "RGB")
    by_pillow("Rose/moving.gif", draw(14, 18, 3, 12), "RGB")
    indexed = Image.fromarray(np.arange(12 * 16, dtype=np.uint8).reshape(12, 16) % 16, "P")
    indexed.save(os.path.join(FOLDER, "Rose/short palette.png"), bits=1)       # one colour, but indices 0 and 1: 1 is black
    indexed.putpalette(draw(1, 13, 3, 20).reshape(-1).tolist())
    indexed.save(os.path.join(FOLDER, "Rose/indexed.png"), bits=4)
    write("Rose/misnamed.png", jpeg(22, 31, 3, 13))
    write("Rose/interlaced.png", interlaced(draw(11, 13, 3, 21)))
    by_pillow("Rose/ink.jpg", draw(16, 12, 4, 22), "CMYK", quality=90)
    write("tulip 10/1.jpg", jpeg(40, 28, 3, 14))
    write("tulip 10/10.jpg", jpeg(28, 40, 3, 15))
    write("tulip 10/2.jpg", jpeg(1, 1, 3, 16))
    write("tulip 10/\u00fcber.png", tf.io.encode_png(draw(7, 5, 3, 17)).numpy())
    write("top.png", tf.io.encode_png(draw(6, 6, 3, 18)).numpy())
    write(".cache/x.png", tf.io.encode_png(draw(6, 6, 3, 19)).numpy())


CASES = [
    {"name": "defaults", "options": {"shuffle": False, "image_size": [12, 10]}},
    {"name": "shuffled", "options": {"seed": 123, "image_size": [12, 10]}, "only_order": True},
    {"name": "training", "options": {"seed": 7, "validation_split": 0.29, "subset": "training"}, "only_order": True},
    {"name": "validation", "options": {"seed": 7, "validation_split": 0.29, "subset": "validation"}, "only_order": True},
    {"name": "unshuffled validation", "options": {"shuffle": False, "validation_split": 0.5, "subset": "validation"}, "only_order": True},
    {"name": "classes in another order", "options": {"class_names": ["tulip 10", "Rose"], "label_mode": "binary", "shuffle": False},
     "only_order": True},
    {"name": "categorical", "options": {"label_mode": "categorical", "shuffle": False}, "only_order": True},
    {"name": "no labels", "options": {"labels": None, "shuffle": False}, "only_order": True},
    {"name": "crop", "options": {"shuffle": False, "image_size": [12, 10], "crop_to_aspect_ratio": True}, "class": "tulip 10"},
    {"name": "pad", "options": {"shuffle": False, "image_size": [9, 14], "pad_to_aspect_ratio": True}, "class": "Rose"},
    {"name": "nearest", "options": {"shuffle": False, "image_size": [9, 14], "interpolation": "nearest"}, "class": "Rose"},
    {"name": "bicubic", "options": {"shuffle": False, "image_size": [9, 14], "interpolation": "bicubic"}, "class": "Rose"},
    {"name": "area", "options": {"shuffle": False, "image_size": [9, 14], "interpolation": "area"}, "class": "Rose"},
    {"name": "lanczos3", "options": {"shuffle": False, "image_size": [9, 14], "interpolation": "lanczos3"}, "class": "Rose"},
    {"name": "lanczos5", "options": {"shuffle": False, "image_size": [9, 14], "interpolation": "lanczos5"}, "class": "Rose"},
    {"name": "gaussian", "options": {"shuffle": False, "image_size": [9, 14], "interpolation": "gaussian"}, "class": "Rose"},
    {"name": "mitchellcubic", "options": {"shuffle": False, "image_size": [9, 14], "interpolation": "mitchellcubic"}, "class": "Rose"},
    {"name": "nearest crop", "options": {"shuffle": False, "image_size": [9, 14], "interpolation": "nearest",
                                         "crop_to_aspect_ratio": True}, "class": "Rose"},
    {"name": "nearest pad", "options": {"shuffle": False, "image_size": [9, 14], "interpolation": "nearest",
                                        "pad_to_aspect_ratio": True}, "class": "Rose"},
    {"name": "rgba", "options": {"shuffle": False, "image_size": [9, 14], "color_mode": "rgba"}, "class": "Rose", "refusing": True},
    {"name": "grayscale of all formats", "options": {"shuffle": False, "image_size": [9, 14], "color_mode": "grayscale"}, "class": "Rose",
     "refusing": True},
    {"name": "grayscale", "options": {"shuffle": False, "image_size": [8, 8], "color_mode": "grayscale"}, "class": "tulip 10"},
]


def to_lua(value):
    if value is None:
        return "false"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float, np.integer, np.floating)):
        return repr(value.item() if hasattr(value, "item") else value)
    if isinstance(value, str):
        return '"%s"' % value
    if isinstance(value, (list, tuple, np.ndarray)):
        return "{ " + ", ".join(to_lua(item) for item in value) + " }" if len(value) else "{}"
    return "{ " + ", ".join("%s = %s" % (key, to_lua(item)) for key, item in value.items()) + " }"


def wrapped(text):
    """Lines of at most 130 characters, broken after commas."""
    lines = [""]
    for part in text.split(", "):
        if len(lines[-1]) + len(part) > 126:
            lines.append("")
        lines[-1] += part + ", "
    return "\n".join(("  " if i == 0 else "    ") + line.rstrip() for i, line in enumerate(lines))[:-1]


def without_refused(dataset, paths):
    """The pictures that TensorFlow decodes to this number of channels (GIF only to 3, BMP to 3 and 4, JPEG to 1 and 3), and their paths."""
    images, decoded, elements = [], [], iter(dataset)
    for path in paths:
        try:
            images.append(next(elements))
            decoded.append(path)
        except tf.errors.InvalidArgumentError:
            pass
    return images, decoded


def run(case, pixels):
    options = dict(case["options"])
    options.setdefault("image_size", [4, 4])
    folder = FOLDER
    if "class" in case:
        folder, options["labels"] = os.path.join(FOLDER, case["class"]), None
    dataset = keras.utils.image_dataset_from_directory(folder, batch_size=None, verbose=False,
                                                       **{key: tuple(v) if key == "image_size" else v for key, v in options.items()})
    paths = [os.path.relpath(path, FOLDER) for path in dataset.file_paths]
    entry = {"name": case["name"], "options": options, "folder": case.get("class", ""), "paths": paths,
             "class_names": dataset.class_names or False}
    if case.get("only_order"):
        # Labels in the order of file_paths: without the shuffling of each epoch.
        indices = {name: i for i, name in enumerate(dataset.class_names or [])}
        if dataset.class_names:
            labels = [indices[path.split(os.sep)[0]] for path in paths]
            if options.get("label_mode") == "categorical":
                labels = np.eye(len(indices))[labels].tolist()
            entry["labels"] = labels
        return entry
    if case.get("refusing"):
        images, entry["decoded"] = without_refused(dataset, paths)
        dataset = images
    images = [element[0] if isinstance(element, tuple) else element for element in dataset]
    entry["labels"] = [int(element[1]) for element in dataset] if "class" not in case else False
    entry["dtype"] = images[0].dtype.name
    entry["offset"] = sum(part.size for part in pixels)
    for image in images:
        pixels.append(np.asarray(image, dtype=np.float32).reshape(-1))
    return entry


def main():
    if "--keep" not in sys.argv:
        make_folder()
    pixels = []
    entries = [run(case, pixels) for case in CASES]
    values = np.concatenate(pixels).astype(np.float32)
    np.save(os.path.join(HERE, "values", "pictures.npy"), values)
    with open(os.path.join(HERE, "pictures.lua"), "w") as file:
        file.write("-- Generated by spec/golden/pictures.py from Keras %s. Do not edit.\nreturn {\n" % keras.__version__)
        for entry in entries:
            file.write(wrapped(to_lua(entry)) + ",\n")
        file.write("}\n")


main()
