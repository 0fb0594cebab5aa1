"""callbacks.py: what Keras' callbacks do with given results of epochs, for spec/golden/callbacks_spec.lua: what they print, when they
stop, which learning rates, files and tables come of it. Needs keras.

    python spec/golden/callbacks.py >spec/golden/callbacks.lua
"""
import contextlib
import io
import os
import tempfile

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np

DOWN = [0.9, 0.7, 0.8, 0.6, 0.65, 0.66, 0.67, 0.59, 0.61, 0.62]
FLAT = [0.5, 0.49999, 0.49998, 0.5, 0.5, 0.5, 0.5, 0.5]
UP = [0.1, 0.3, 0.2, 0.25, 0.4, 0.39, 0.38, 0.37]
NAN = [0.5, float("nan"), 0.4, float("nan"), float("nan")]
TINY = [1e-05, 1.0, 0.1, 1e16, 123456.789, 1 / 3, float("nan"), float("inf")]

# name, class, options, the key that the epochs' results get, those results
CASES = [
    ("stop at once", "EarlyStopping", dict(verbose=1), "val_loss", DOWN),
    ("patience", "EarlyStopping", dict(patience=3, verbose=1), "val_loss", DOWN),
    ("min_delta", "EarlyStopping", dict(patience=2, min_delta=0.15, verbose=1), "val_loss", DOWN),
    ("upwards", "EarlyStopping", dict(monitor="val_auc", mode="max", patience=2, verbose=1), "val_auc", UP),
    ("baseline", "EarlyStopping", dict(patience=3, baseline=0.65, verbose=1), "val_loss", DOWN),
    ("baseline never met", "EarlyStopping", dict(patience=4, baseline=0.1, verbose=1), "val_loss", DOWN),
    ("late start", "EarlyStopping", dict(patience=1, start_from_epoch=4, verbose=1), "val_loss", DOWN),
    ("best weights", "EarlyStopping", dict(patience=2, restore_best_weights=True, verbose=1), "val_loss", DOWN),
    ("best weights at the end", "EarlyStopping", dict(patience=20, restore_best_weights=True, verbose=1), "val_loss", DOWN),
    ("not a number", "EarlyStopping", dict(patience=2, verbose=1), "val_loss", NAN),
    ("plateau", "ReduceLROnPlateau", dict(patience=2, verbose=1), "val_loss", FLAT),
    ("plateau with cooldown", "ReduceLROnPlateau", dict(patience=1, cooldown=2, factor=0.5, verbose=1), "val_loss", FLAT),
    ("plateau with a floor", "ReduceLROnPlateau", dict(patience=1, min_lr=0.02, factor=0.3, verbose=1), "val_loss", FLAT),
    ("plateau upwards", "ReduceLROnPlateau", dict(monitor="val_auc", mode="max", patience=2, factor=0.5, verbose=1), "val_auc", UP),
    ("schedule", "LearningRateScheduler", dict(verbose=1), "val_loss", DOWN[:4]),
    ("every epoch", "ModelCheckpoint", dict(filepath="m-{epoch:02d}-{val_loss:.2f}.keras", verbose=1), "val_loss", DOWN[:3]),
    ("best only", "ModelCheckpoint", dict(filepath="a/b/m-{epoch}.keras", save_best_only=True, verbose=1), "val_loss", DOWN),
    ("best below", "ModelCheckpoint",
     dict(filepath="best.keras", save_best_only=True, initial_value_threshold=0.65, verbose=1), "val_loss", DOWN),
    ("weights only", "ModelCheckpoint", dict(filepath="{epoch:3d}.weights.h5", save_weights_only=True, verbose=1), "val_loss", DOWN[:2]),
    ("every three batches", "ModelCheckpoint", dict(filepath="{epoch}-{batch}.keras", save_freq=3, verbose=1), "val_loss", DOWN[:4]),
    ("table", "CSVLogger", dict(filename="log.csv"), "val_loss", DOWN[:3]),
    ("table of odd numbers", "CSVLogger", dict(filename="log.csv", separator=";"), "val_loss", TINY),
    ("table without validation", "CSVLogger", dict(filename="log.csv"), "loss", DOWN[:2]),
]


def schedule(epoch, rate):
    return rate if epoch < 2 else rate * 0.5


class Results(keras.callbacks.Callback):
    """The results of the epochs are those given, whatever the model did."""

    def __init__(self, key, values):
        super().__init__()
        self.key, self.values = key, values

    def on_epoch_end(self, epoch, logs):
        logs.clear()
        logs["loss"] = 0.125
        logs[self.key] = self.values[epoch]


def run(class_name, options, key, values):
    model = keras.Sequential([keras.layers.Input((1,)), keras.layers.Dense(1)])
    model.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse")
    positions = [schedule] if class_name == "LearningRateScheduler" else []
    callback = getattr(keras.callbacks, class_name)(*positions, **options)
    x, y = np.ones((8, 1), "float32"), np.full((8, 1), 2, "float32")
    printed = io.StringIO()
    weights = []
    after = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: weights.append(model.get_weights()))
    with contextlib.redirect_stdout(printed):
        history = model.fit(x, y, batch_size=2, epochs=len(values), verbose=0, callbacks=[Results(key, values), callback, after])
    result = {"epochs": len(history.epoch), "printed": printed.getvalue()}
    if class_name in ("ReduceLROnPlateau", "LearningRateScheduler"):
        result["rates"] = history.history["learning_rate"] + [float(model.optimizer.learning_rate.numpy())]
    if options.get("restore_best_weights"):
        result["weights_of"] = [i for i, w in enumerate(weights) if all((a == b).all() for a, b in zip(w, model.get_weights()))][0] + 1
    files = sorted(os.path.join(folder, name)[2:] for folder, _, names in os.walk(".") for name in names)
    if class_name == "ModelCheckpoint":
        result["files"] = files
    if class_name == "CSVLogger":
        with open("log.csv", newline="") as file:
            result["table"] = file.read()
    return result


def lua(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r") + '"'
    if isinstance(value, list):
        return "{ " + ", ".join(map(lua, value)) + " }"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {lua(v)}" for k, v in value.items()) + " }"
    if value != value:
        return "0/0"
    if value == float("inf"):
        return "1/0"
    return repr(value)


print(f"-- callbacks.lua: made by callbacks.py with Keras {keras.__version__}: a case, and what came of it.")
print("return {")
for name, class_name, options, key, values in CASES:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        result = run(class_name, options, key, values)
    print(f"  {{ name = {lua(name)}, class = {lua(class_name)},")
    print(f"    options = {lua(options)},")
    print(f"    key = {lua(key)}, values = {lua(values)},")
    lines = [f"    {k} = {lua(v)}," for k, v in result.items()]
    for line in lines:
        while len(line) > 138:      # a long text goes on in the next line
            cut = line.rfind("\\n", 0, 130) if '"' in line else line.rfind(", ", 0, 130)
            cut = cut + 2
            if line.count('"', 0, cut) % 2:
                print(line[:cut] + '" ..')
                line = '      "' + line[cut:]
            else:
                print(line[:cut].rstrip())
                line = "      " + line[cut:].lstrip()
        print(line)
    print("  },")
print("}")
