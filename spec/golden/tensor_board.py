"""tensor_board.py: which tags and steps Keras' TensorBoard callback writes, as TensorBoard reads them, for
spec/golden/tensor_board_spec.lua. Needs keras, tensorflow and tensorboard.

    python spec/golden/tensor_board.py >spec/golden/tensor_board.lua
"""
import os
import tempfile

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np
from tensorboard.backend.event_processing import event_accumulator

# Name, options, and the beginning of the tags that are compared. With update_freq = 3 Keras writes results of epochs only if the last
# batch happens to be a third one; ours writes them all.
CASES = [
    ("by epochs", {}, ""),
    ("by batches", {"update_freq": "batch", "write_steps_per_second": True}, ""),
    ("every three batches", {"update_freq": 3}, "batch_"),
    ("with weights", {"histogram_freq": 2, "write_images": True}, ""),
]


def found(options):
    folder = tempfile.mkdtemp()
    model = keras.Sequential([keras.layers.Input((5, 5, 3)), keras.layers.Conv2D(2, 3, name="conv"), keras.layers.Flatten(name="flatten"),
                              keras.layers.Dense(3, name="dense")], name="model")
    model.compile(optimizer=keras.optimizers.SGD(0.125), loss="mse", metrics=["mae"])
    x, y = np.ones((8, 5, 5, 3), "float32"), np.ones((8, 3), "float32")
    callback = keras.callbacks.TensorBoard(folder, write_graph=False, **options)
    model.fit(x, y, batch_size=2, epochs=3, verbose=0, validation_data=(x, y), callbacks=[callback])
    model.evaluate(x, y, verbose=0, callbacks=[callback])
    result = []
    for run in ("train", "validation"):
        for path in sorted(os.listdir(os.path.join(folder, run))):
            events = event_accumulator.EventAccumulator(os.path.join(folder, run, path), size_guidance={"tensors": 0})
            events.Reload()
            for tag in events.Tags()["tensors"]:
                plugin = events.SummaryMetadata(tag).plugin_data.plugin_name
                steps = " ".join(str(event.step) for event in events.Tensors(tag))
                result.append(f"{run} {plugin} {tag}: {steps}")
    return sorted(result)


print(f"-- tensor_board.lua: made by tensor_board.py with Keras {keras.__version__}: run, plugin, tag and steps.")
print("return {")
for name, options, only in CASES:
    keras.backend.clear_session()
    fields = ", ".join(f"{k} = {('true' if v else 'false') if isinstance(v, bool) else repr(v)}" for k, v in options.items())
    print(f"  {{ name = {name!r}, only = {only!r}, options = {{ {fields} }},".replace("'", '"'))
    for line in found(options):
        if line.split(" ")[2].startswith(only):
            print(f'    "{line}",')
    print("  },")
print("}")
