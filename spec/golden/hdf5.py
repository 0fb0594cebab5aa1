# hdf5.py: HDF5 files and archives against h5py, Python's zipfile and Keras, in both directions.
#   python spec/golden/hdf5.py make    writes spec/golden/hdf5/*.h5 with h5py and Keras, and for each of them, and of
#                                      spec/golden/keras/*.keras, hdf5/NAME.lua: what is in it
#   python spec/golden/hdf5.py check   writes files with flowlua (hdf5_files.lua, luajit and build/lib needed), opens them here, and
#                                      keeps the ones that were found right as hdf5/written.h5, which hdf5_spec.lua compares with
# Needs h5py, keras and tensorflow-cpu (Keras 3.13 or later).
import functools
import io
import os
import subprocess
import sys
import tempfile
import zipfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import h5py
import ml_dtypes
import numpy as np

here = os.path.dirname(os.path.abspath(__file__))
folder = os.path.join(here, "hdf5")
DTYPES = ["float32", "float16", "bfloat16", "float64", "int8", "uint8", "int32", "int64", "bool"]


def numbers(dtype):
    return np.array([[0, 1, 2], [3, 4, 100]], "float64").astype(dtype)


def dtype_of(name):
    return ml_dtypes.bfloat16 if name == "bfloat16" else np.dtype(name)


# ---- make ------------------------------------------------------------------------------------------------------------------------

def make_plain(path):
    with h5py.File(path, "w") as file:
        for name in DTYPES:
            dataset = file.create_dataset("dtypes/" + name, data=numbers(dtype_of(name)))
            if name == "bfloat16":
                dataset.attrs["dtype"] = "bfloat16"
        file["scalar"] = np.float32(1.5)
        file["scalar64"] = np.int64(2**40)
        file["empty"] = np.zeros((0, 3), "float32")
        file["eight"] = np.arange(8, dtype="int32").reshape((1, 2, 1, 2, 1, 2, 1, 1))
        file.create_group("nothing here").attrs["empty"] = ""
        file.attrs["name"] = "ein Modell: größer"
        for i in range(12):
            file["nothing here"].attrs["note %d" % i] = "text %d" % i
        file["nothing here"].attrs["fixed"] = np.bytes_("of fixed length")
        file["nothing here"].attrs["number"] = 5
        file["nothing here"].attrs["numbers"] = np.arange(3)
        file["empty"].attrs["long"] = "0123456789" * 9
        for i in range(300):
            file["many/%d" % i] = np.float32(i)
        compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        compact.set_layout(h5py.h5d.COMPACT)
        data = np.array([1, 2, 3], "float32")
        dataset = h5py.h5d.create(file.id, b"compact", h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple((3,)), compact)
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, data)


def make_others():
    """Files beyond what Keras writes, one feature each."""
    def other(name, **options):
        return h5py.File(os.path.join(folder, name + ".h5"), "w", **options)
    data = np.arange(400, dtype="float32").reshape(20, 20)
    with other("chunked") as file:
        file.create_dataset("layers/dense/vars/0", data=data, chunks=(7, 7))
    with other("gzip") as file:
        file.create_dataset("layers/dense/vars/0", data=data, chunks=(20, 20), compression="gzip", shuffle=True)
        file["layers/dense/vars"].attrs["name"] = "dense"
    with other("latest", libver="latest") as file:
        file["layers/dense/vars/0"] = data
        file["layers/dense/vars"].attrs["name"] = "dense"
    with other("utf8_names") as file:                      # h5py makes a group of the new style for such a name
        file["großes/пример/名前"] = data
        file["große"] = data[0]
    with other("big_endian") as file:
        file["0"] = data.astype(">f4")
    with other("int16") as file:
        file["0"] = data.astype("int16")
    with other("soft_link") as file:
        file["0"] = data[0]
        file["1"] = h5py.SoftLink("/0")
    with other("texts") as file:
        file["0"] = ["a", "b"]
    with other("unwritten") as file:
        file.create_dataset("0", (3,), "float32")
    image = open(os.path.join(folder, "gzip.h5"), "rb").read()
    with zipfile.ZipFile(os.path.join(folder, "deflated.zip"), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("model.weights.h5"), image, zipfile.ZIP_DEFLATED)


def keras_model():
    import keras
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(3, activation="relu", name="first"),
                              keras.layers.Dropout(0.5), keras.layers.Dense(2, name="second", dtype="bfloat16")])
    model.compile("adam", "mse")
    model.optimizer.build(model.trainable_variables)
    return model


def make_keras(path):
    model = keras_model()
    model.fit(np.ones((8, 4), "float32"), np.ones((8, 2), "float32"), verbose=0)
    model.save_weights(path)


def lua_text(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def describe(file):
    """Tensors: dtype, shape, the first values, and the sum of all in order."""
    lines, notes, groups = [], [], []

    def visit(name, item):
        for key, value in item.attrs.items():
            if isinstance(value, (str, bytes)):
                text = value.decode() if isinstance(value, bytes) else value
                notes.append("{ %s, %s, %s }" % (lua_text(name), lua_text(key), lua_text(text)))
        if isinstance(item, h5py.Group):
            if name:
                groups.append(lua_text(name))
            return
        data = item[()]
        if item.attrs.get("dtype") == "bfloat16":
            data = np.frombuffer(item[()].tobytes(), ml_dtypes.bfloat16).reshape(item.shape)
        data = np.asarray(data)
        if data.dtype == np.int16:
            data = data.astype("int32")                        # the dtype that holds all its values
        name_of = "bfloat16" if data.dtype == ml_dtypes.bfloat16 else data.dtype.newbyteorder("=").name
        values = [float(x) for x in data.astype("float64").ravel()]
        total = functools.reduce(lambda a, b: a + b, values, 0.0)
        lines.append("[%s] = { dtype = %s, shape = { %s },@first = { %s }, sum = %.17g }" % (
            lua_text(name), lua_text(name_of), ", ".join(map(str, data.shape)), ", ".join("%.17g" % x for x in values[:3]), total))
        lines[-1] = lines[-1].replace("@", " " if len(lines[-1]) < 120 else "\n      ")

    visit("", file)
    file.visititems(visit)
    return "{\n  tensors = {\n    %s },\n  notes = {\n    %s },\n  groups = {\n    %s } }" % (
        ",\n    ".join(lines), ",\n    ".join(notes), ",\n    ".join(groups))


def make():
    os.makedirs(folder, exist_ok=True)
    make_plain(os.path.join(folder, "plain.h5"))
    make_others()
    make_keras(os.path.join(folder, "keras.weights.h5"))

    def save(name, file):
        with open(os.path.join(folder, os.path.basename(name).split(".")[0] + ".lua"), "w") as out:
            out.write("-- What h5py finds in %s; made by spec/golden/hdf5.py.\nreturn %s\n" % (name, describe(file)))

    for name in ["hdf5/plain.h5", "hdf5/keras.weights.h5", "hdf5/chunked.h5", "hdf5/gzip.h5", "hdf5/latest.h5", "hdf5/big_endian.h5",
                 "hdf5/int16.h5",
                 "hdf5/utf8_names.h5"]:
        with h5py.File(os.path.join(here, name)) as file:
            save(name, file)
    for name in sorted(os.listdir(os.path.join(here, "keras"))):
        if name.endswith(".keras"):
            with zipfile.ZipFile(os.path.join(here, "keras", name)) as archive:
                with h5py.File(io.BytesIO(archive.read("model.weights.h5"))) as file:
                    save("keras/" + name, file)


# ---- check -----------------------------------------------------------------------------------------------------------------------

def check_tree(file):
    assert file.attrs["name"] == "ein Modell: größer"
    assert sorted(file) == sorted(["dtypes", "scalars", "empty", "transposed", "großes", "nothing here", "many"]), sorted(file)
    for name in DTYPES:
        data = file["dtypes/" + name]
        value = data[()]
        if name == "bfloat16":
            assert data.attrs["dtype"] == "bfloat16"
            value = np.array(data, dtype=ml_dtypes.bfloat16)
        assert value.dtype == dtype_of(name) and (value == numbers(dtype_of(name))).all(), name
        assert data.id.get_offset() % 64 == 0 and data.chunks is None
    assert file["scalars/number"][()] == np.float32(1.5) and file["scalars/number"].shape == ()
    assert file["scalars/iteration"][()] == 7 and file["scalars/iteration"].dtype == np.int64
    assert file["empty"].shape == (0, 3) and file["empty"][()].size == 0 and file["empty"].attrs["long"] == "0123456789" * 7000
    assert (file["transposed"][()] == [[1, 4], [2, 5], [3, 6]]).all()
    assert (file["großes/пример/名前"][()] == [1, 2]).all()
    assert list(file["nothing here"]) == [] and file["nothing here"].attrs["empty"] == ""
    many = file["many"]
    assert len(many) == 300 and list(many) == sorted("layer_%d" % i for i in range(300))
    for i in range(300):
        variables = many["layer_%d/vars" % i]
        assert variables.attrs["name"] == "layer number %d" % i
        assert list(variables) == (["0"] if i % 50 == 0 else [])
        if i % 50 == 0:
            assert (variables["0"][()] == [i, i + 0.5]).all()
    assert "layer_300" not in many and "a" not in many and "z" not in many


def check_changes(path):
    """libhdf5 can change what was written: add to full groups, remove, add attributes."""
    with h5py.File(path, "r+") as file:
        for i in range(300, 700):
            file["many/layer_%d/vars/0" % i] = np.float32(i)
        for i in range(0, 300, 3):
            del file["many/layer_%d" % i]
        file["many/layer_1/vars"].attrs["more"] = "x" * 5000
        file["nothing here/new"] = 1
        file["dtypes/float32"][0, 0] = 9
    with h5py.File(path) as file:
        assert len(file["many"]) == 600 and file["many/layer_699/vars/0"][()] == 699
        assert file["many/layer_1/vars"].attrs["more"] == "x" * 5000 and file["many/layer_2/vars"].attrs["name"] == "layer number 2"
        assert file["dtypes/float32"][0, 0] == 9


def check():
    with tempfile.TemporaryDirectory() as out:
        root = os.path.dirname(os.path.dirname(here)) + "/"
        environment = dict(os.environ, LUA_PATH="%slua/?.lua;%slua/?/init.lua;%s?.lua;;" % (root, root, root),
                           FLOWLUA_LIB=os.path.join(os.environ.get("FLOW_BUILD", root + "build"), "lib/libflow.so.0"))
        program = "require('spec.golden.hdf5_files').write(%s, %s)" % (lua_text(out), lua_text(root))
        subprocess.run(["luajit", "-e", program], check=True, env=environment)
        path = os.path.join(out, "written.h5")
        written = open(path, "rb").read()
        with h5py.File(path) as file:
            check_tree(file)
        check_changes(path)

        with zipfile.ZipFile(os.path.join(out, "written.zip")) as archive:
            assert archive.testzip() is None
            assert archive.namelist() == ["metadata.json", "model.weights.h5", "assets/ü"], archive.namelist()
            assert archive.read("metadata.json").decode() == '{"a": "ä"}' and archive.read("assets/ü") == b""
            assert all(info.compress_type == zipfile.ZIP_STORED and info.date_time == (1980, 1, 1, 0, 0, 0) for info in archive.infolist())
            assert archive.read("model.weights.h5") == written
        subprocess.run(["unzip", "-tq", os.path.join(out, "written.zip")], check=False)

        model, fresh = keras_model(), keras_model()
        model.load_weights(os.path.join(folder, "keras.weights.h5"))
        fresh.load_weights(os.path.join(out, "copied.weights.h5"))
        for a, b in zip(model.variables + model.optimizer.variables, fresh.variables + fresh.optimizer.variables):
            assert (np.asarray(a.value, "float64") == np.asarray(b.value, "float64")).all(), a.path
        assert any(np.asarray(v.value, "float64").any() for v in fresh.optimizer.variables[2:])
        with open(os.path.join(folder, "written.h5"), "wb") as stored:
            stored.write(written)
    print("h5py, zipfile and Keras agree; h5py %s, HDF5 %s" % (h5py.__version__, h5py.version.hdf5_version))


if __name__ == "__main__":
    {"make": make, "check": check}[sys.argv[1]]()
