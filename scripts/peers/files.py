"""How long saving and loading a model takes, in one run: flowlua, dd with fsync of as many bytes, Keras."""
import argparse
import os
import re
import statistics
import subprocess
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
parser = argparse.ArgumentParser(prog="bench --files")
parser.add_argument("--megabytes", type=int, default=100)
parser.add_argument("--rounds", type=int, default=7)
parser.add_argument("--alone", action="store_true")
options = parser.parse_args()
path, raw, other = "build/bench/model.keras", "build/bench/raw", "build/bench/keras.keras"


def flowlua(action, where):
    found = subprocess.run(["build/bin/flowlua", "scripts/peers/files.lua", action, where, str(options.megabytes)],
                           check=True, capture_output=True, text=True)
    return float(found.stdout)


def dd():
    if os.path.exists(raw):
        os.remove(raw)
    found = subprocess.run(["dd", "if=/dev/zero", f"of={raw}", "bs=1M", f"count={options.megabytes}", "conv=fsync"], check=True,
                           capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    return float(re.search(r"copied, ([\d.]+) s", found.stderr).group(1)) * options.megabytes * 1e6 / (options.megabytes << 20)


seconds = {"dd with fsync": [], "flowlua saves": [], "flowlua loads": []}
keras = None
if not options.alone:
    import keras
    seconds.update({"Keras saves": [], "Keras loads": []})
for _ in range(options.rounds):
    seconds["dd with fsync"].append(dd())
    if os.path.exists(path):
        os.remove(path)
    seconds["flowlua saves"].append(flowlua("save", path))
    seconds["flowlua loads"].append(flowlua("load", path))
    if keras:
        started = time.perf_counter()
        model = keras.models.load_model(path)
        seconds["Keras loads"].append(time.perf_counter() - started)
        started = time.perf_counter()
        model.save(other)
        seconds["Keras saves"].append(time.perf_counter() - started)
print(f"a model of {options.megabytes} MB, {options.rounds} rounds: median seconds (least)")
for name, values in seconds.items():
    print(f"  {name:<16} {statistics.median(values):8.3f} ({min(values):.3f})")
ratio = statistics.median(a / b for a, b in zip(seconds["flowlua saves"], seconds["dd with fsync"]))
print(f"saving takes {ratio:.2f} times as long as dd")
if keras:
    ratio = statistics.median(a / b for a, b in zip(seconds["Keras loads"], seconds["flowlua loads"]))
    print(f"loading is {ratio:.1f} times as fast as Keras {keras.__version__}")
for file in (path, raw, other):
    if os.path.exists(file):
        os.remove(file)
