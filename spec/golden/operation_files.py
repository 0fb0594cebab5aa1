"""Functional models of operations of keras.ops, for operation_files_spec.lua to load, and files of flowlua for Keras to load.

    /opt/peers/bin/python spec/golden/operation_files.py make      writes keras/operation_files.keras and keras/operation_files.npz
    /opt/peers/bin/python spec/golden/operation_files.py check     has flowlua write that model again and models that it makes, as
                                                                   operation_files.lua says, and compares what Keras makes of them
"""
import os
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["KERAS_BACKEND"] = "tensorflow"
import keras
import numpy as np
from keras import ops

HERE = os.path.dirname(os.path.abspath(__file__))
FILE = os.path.join(HERE, "keras", "operation_files")
random = np.random.RandomState(3)


def floats(*shape):
    return random.uniform(-0.9, 0.9, shape).astype("float32")


INPUTS = {"x": floats(4, 4), "y": floats(4, 4), "image": floats(4, 6, 6, 3), "query": floats(4, 5, 2, 4),
          "ids": random.randint(0, 4, (4, 4)).astype("int32"), "rows": floats(4, 16)}


def outputs(x, y, image, query, ids, rows):
    """By name; each has what is most often given, and what differs from the default."""
    ones, kernel = np.ones(4, "float32"), floats(3, 3, 3, 4)
    transform = np.array([[1, 0.1, 0, 0, 1, 0.5, 0, 0]] * 4, "float32")
    return {
        "argsort": ops.argsort(x), "argsort_rows": ops.argsort(x, axis=0), "argmax": ops.argmax(x, axis=1, keepdims=True),
        "top_k": ops.top_k(x, 2), "take": ops.take(x, ids[:, :2], axis=1), "take_along_axis": ops.take_along_axis(x, ids, axis=1),
        "take_of_constant": ops.take(np.eye(4, dtype="float32"), ids, axis=0), "sort": ops.sort(x, axis=0),
        "einsum": ops.einsum("bhwc,bhwd->bcd", image, image), "einsum_constant": ops.einsum("bi,ij->bj", x, floats(4, 3)),
        "tensordot": ops.tensordot(image, floats(3, 2), axes=1),
        "tensordot_axes": ops.tensordot(image, floats(3, 6, 2), axes=[[1, 3], [1, 0]]),
        "dot": ops.dot(x, floats(4, 3)), "inner": ops.inner(x, floats(3, 4)), "outer": ops.outer(x, ones),
        "conv": ops.conv(image, kernel, 2, "same"), "conv_dilated": ops.conv(image, kernel, dilation_rate=2),
        "depthwise_conv": ops.depthwise_conv(image, floats(3, 3, 3, 2), padding="same"),
        "separable_conv": ops.separable_conv(image, floats(3, 3, 3, 1), floats(1, 1, 3, 5)),
        "max_pool": ops.max_pool(image, (3, 2), (1, 2), "same"), "average_pool": ops.average_pool(image, 2),
        "attention": ops.dot_product_attention(query, query * 2, query + 1, scale=0.3, is_causal=True),
        "attention_mask": ops.dot_product_attention(query, query, query, mask=ops.greater(query[:, None, :, 0, :1], 0) | True),
        "layer_normalization": ops.layer_normalization(x, ones * 2, ones, epsilon=0.01), "plain_normalization": ops.layer_normalization(x),
        "rms_normalization": ops.rms_normalization(x, ones * 3), "batch_normalization": ops.batch_normalization(x, ones, ones * 2, -1,
                                                                                                           offset=ones, scale=ones * 3),
        "quantile": ops.quantile(x, 0.3, axis=1), "quantiles": ops.quantile(x, [0.2, 0.8], axis=-1, keepdims=True),
        "percentile": ops.percentile(x, 30, axis=1, method="lower"), "linspace": ops.linspace(x, y, 3, endpoint=False, axis=-1),
        "logspace": ops.logspace(x, y, 4, base=2), "isclose": ops.isclose(x, y, atol=0.5), "average": ops.average(x, axis=1, weights=y + 2),
        "multi_hot": ops.multi_hot(ids, 5), "one_hot_first": ops.one_hot(ids, 5, axis=1), "expand_dims": ops.expand_dims(x, (1, 3)),
        "softmax_all": ops.softmax(x, axis=None), "rot90": ops.rot90(image, 1, (1, 2)), "cross": ops.cross(x[:, :3], y[:, :3]),
        "full_like": ops.full_like(x, 3, dtype="int32"), "searchsorted": ops.searchsorted(np.sort(floats(5)), x[:, 0]),
        "segment_sum": ops.segment_sum(ops.transpose(x), np.array([0, 2, 1, 0], "int32"), num_segments=3),
        "scatter_update": ops.scatter_update(x, [[0, 1], [2, 3]], np.array([5.0, 6.0], "float32")), "meshgrid": ops.meshgrid(x[:, 0], y[0]),
        "slice": ops.slice(image, (0, 1, 2, 0), (4, 3, 2, 3)), "unfold": ops.unfold(ops.transpose(image, (0, 3, 1, 2)), 2),
        "correlate": ops.correlate(x[0], y[0], "full"), "array_split": ops.array_split(x, 3, axis=1), "vstack": ops.vstack([x, y]),
        "select": ops.select([x > 0.5, y > 0], [x, y * 2], 0.25), "trapezoid": ops.trapezoid(x, dx=0.5), "vdot": ops.vdot(x, y),
        "sparse_crossentropy": ops.sparse_categorical_crossentropy(ids[:, 0], y, from_logits=True), "nancumsum": ops.nancumsum(x, axis=1),
        "stft": ops.stft(rows, 4, 2, 8, window=None, center=False), "rearrange": ops.rearrange(rows, "b (h w) -> b h w", h=4),
        "resize": ops.image.resize(image, (3, 9), interpolation="nearest"), "affine": ops.image.affine_transform(image, transform),
        "crop_images": ops.image.crop_images(image, top_cropping=1, left_cropping=2, target_height=3, target_width=3),
        "extract_patches": ops.image.extract_patches(image, (2, 3), strides=(1, 2)), "grayscale": ops.image.rgb_to_grayscale(image),
        "map_coordinates": ops.image.map_coordinates(x, floats(2, 3, 3) + 1.5, 1, "nearest"),
        "saturate_cast": ops.saturate_cast(x * 300, "uint8"), "convert": ops.convert_to_tensor(x * 3, dtype="int32"),
        "one_hot_floats": ops.one_hot(x * 4, 4), "multi_hot_floats": ops.multi_hot(x * 4, 4),
        "geomspace": ops.geomspace(ops.abs(x) + 1, 7.0, 3),
    }


def make():
    inputs = {name: keras.Input(batch_shape=value.shape, dtype=str(value.dtype), name=name) for name, value in INPUTS.items()}
    flat, names = [], []
    for name, result in outputs(**inputs).items():
        for i, tensor in enumerate(keras.tree.flatten(result)):
            flat.append(tensor)
            names.append(f"{len(flat):03d} {name} {i}")
    model = keras.Model(list(inputs.values()), flat)
    model.save(FILE + ".keras")
    found = model([ops.convert_to_tensor(value) for value in INPUTS.values()])
    arrays = {f"out {name}": ops.convert_to_numpy(value) for name, value in zip(names, found)}
    np.savez_compressed(FILE + ".npz", **INPUTS, **arrays)
    print(len(flat), "outputs")


def compare(path, arrays):
    model = keras.models.load_model(path, compile=False)
    found = model([ops.convert_to_tensor(value) for value in INPUTS.values()])
    assert len(found) == len(arrays), (len(found), len(arrays))
    for (name, expected), value in zip(sorted(arrays.items()), found):
        np.testing.assert_allclose(ops.convert_to_numpy(value).astype("float64"), expected.astype("float64"), rtol=2e-5, atol=2e-5,
                                   err_msg=name)


def check():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["luajit", os.path.join(HERE, "operation_files.lua"), FILE, folder], check=True)
        stored = np.load(FILE + ".npz")
        INPUTS.update({name: stored[name] for name in INPUTS})
        compare(os.path.join(folder, "again.keras"), {name: stored[name] for name in stored.files if name.startswith("out ")})
        own = np.load(os.path.join(folder, "own.npz"))
        compare(os.path.join(folder, "own.keras"), {name: own[name] for name in own.files})
    print("Keras reads both")


if __name__ == "__main__":
    if sys.argv[1:] == ["make"]:
        make()
    elif sys.argv[1:] == ["check"]:
        check()
    else:
        raise SystemExit(__doc__)
