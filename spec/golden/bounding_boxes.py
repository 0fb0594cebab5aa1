"""Golden cases of bounding_boxes_spec.lua: boxes as keras.utils.bounding_boxes and Keras' layers change them.

    /tmp/keras/bin/python spec/golden/bounding_boxes.py

writes bounding_boxes.lua. Left out are layers whose boxes do not follow the picture in Keras: RandomCrop takes the row from the column,
RandomRotation reads every format as xyxy, RandomFlip clips shares as if they were pixels, RandomShear shears shares."""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"
import keras
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
B, L = keras.utils.bounding_boxes, keras.layers
HEIGHT, WIDTH = 40, 60
BOXES = np.array([[[10, 20, 30, 38], [0, 0, 5, 5]], [[1, 2, 3, 4], [50, 30, 59, 39]]], "float32")
LABELS = np.array([[1, 2], [3, 0]], "int32")
SIZES = np.array([HEIGHT, WIDTH], "float32")
FORMATS = ["xyxy", "yxyx", "xywh", "center_xywh", "center_yxhw", "rel_xyxy", "rel_yxyx", "rel_xywh", "rel_center_xywh"]
IMAGES = np.zeros((2, HEIGHT, WIDTH, 1), "float32")
SHAPE = IMAGES.shape


def found(boxes, labels=None):
    return {"boxes": np.array(boxes), **({} if labels is None else {"labels": np.array(labels)})}


def of(kind):
    return {"boxes": np.array(B.convert_format(BOXES, "xyxy", kind, HEIGHT, WIDTH)), "labels": LABELS.copy()}


def layer(made, kind, transformation):
    result = made.transform_bounding_boxes(of(kind), transformation)
    return found(result["boxes"], result["labels"])


def column(*values):
    return np.array(values, "float32")


CASES = {}
for source in FORMATS:
    for target in FORMATS if source in ("xyxy", "rel_xywh") else ["center_xywh"]:
        CASES[f"{source} {target}"] = found(B.convert_format(of(source)["boxes"], source, target, HEIGHT, WIDTH))
clipped = B.clip_to_image_size({"boxes": BOXES - 4, "labels": LABELS}, 30, 50)
CASES["clip"] = found(clipped["boxes"], clipped["labels"])
CASES["crop"] = found(B.crop(BOXES, 3, 12, 20, 30))
CASES["pad"] = found(B.pad(BOXES, 3, 12))
CASES["affine"] = found(B.affine_transform(BOXES, column(30, -75), column(.1, -.2), column(0, .3), column(1, 1.5), column(10, 0),
                                           column(0, 20), SIZES[0], SIZES[1]))
CASES["encode"] = found(B.encode_box_to_deltas(BOXES[1], BOXES, "xyxy", "xyxy", variance=[.1, .1, .2, .2]))
CASES["decode"] = found(B.decode_deltas_to_boxes(BOXES[1], np.array(CASES["encode"]["boxes"]), "xyxy", "xywh", variance=[.1, .1, .2, .2]))
CASES["iou"] = found(B.compute_iou(BOXES, BOXES[0] + 3, "xyxy"))
CASES["iou masked"] = found(B.compute_iou(BOXES[0], np.concatenate([BOXES[0] + 1, -np.ones((1, 4), "float32")]), "xyxy", use_masking=True))
CASES["ciou"] = found(B.compute_ciou(BOXES, BOXES[:, ::-1] * .5 + 3, "xyxy"))
for kind in ("xyxy", "rel_yxyx", "center_xywh"):
    for name, made, transformation in [
        ("CenterCrop 20 30", L.CenterCrop(20, 30, bounding_box_format=kind), {"input_shape": SHAPE}),
        ("CenterCrop 50 30", L.CenterCrop(50, 30, bounding_box_format=kind), {"input_shape": SHAPE}),
        ("Resizing 20 90", L.Resizing(20, 90, bounding_box_format=kind), (HEIGHT, WIDTH)),
        ("Resizing 20 20 crop", L.Resizing(20, 20, crop_to_aspect_ratio=True, bounding_box_format=kind), (HEIGHT, WIDTH)),
        ("Resizing 50 20 pad", L.Resizing(50, 20, pad_to_aspect_ratio=True, bounding_box_format=kind), (HEIGHT, WIDTH)),
        ("RandomZoom", L.RandomZoom((-.5, .5), bounding_box_format=kind),
         {"height_zoom": column([.75], [1.25]), "width_zoom": column([1.5], [.5]), "input_shape": SHAPE}),
        ("RandomTranslation", L.RandomTranslation(.5, .5, bounding_box_format=kind),
         {"translations": column([6, -5], [-12, 3]), "input_shape": SHAPE}),
    ]:
        CASES[f"{name} {kind}"] = layer(made, kind, transformation)
# Keras leaves those of other formats as xyxy.
MOVES = np.array([[[.1, .2], [-.15, .3], [.05, -.2], [-.1, -.05]], [[.2, -.1], [.1, .1], [-.3, .2], [.25, .15]]], "float32")
CORNERS = np.tile(np.array([[[0, 0], [WIDTH - 1, 0], [0, HEIGHT - 1], [WIDTH - 1, HEIGHT - 1]]], "float32"), (2, 1, 1))
for name, applied in (("RandomPerspective", [True, True]), ("RandomPerspective one", [False, True])):
    CASES[name + " xyxy"] = layer(L.RandomPerspective(bounding_box_format="xyxy"), "xyxy", {
        "apply_perspective": np.array(applied), "start_points": CORNERS, "end_points": CORNERS + CORNERS * MOVES, "input_shape": SHAPE})
CASES["RandomRotation xyxy"] = layer(L.RandomRotation(.5, bounding_box_format="xyxy"), "xyxy", {
    "angle": column(30, -75), "image_height": SIZES[0], "image_width": SIZES[1], "batch_size": 2})


def lua(value):
    return "{ " + ", ".join(map(lua, value)) + " }" if isinstance(value, list) else repr(value)


lines = ["-- Made by bounding_boxes.py.", "return {"]
for name, result in CASES.items():
    lines.append(f'  ["{name}"] = {{')
    for key, value in result.items():
        texts = [lua(v) for v in np.round(value.astype("float64"), 3).reshape(-1).tolist()]
        lines += [f"    {key} = {{"] + ["      " + ", ".join(texts[i:i + 12]) + "," for i in range(0, len(texts), 12)] + ["    },"]
    lines.append("  },")
with open(os.path.join(HERE, "bounding_boxes.lua"), "w") as file:
    file.write("\n".join(lines + ["}", ""]))
