"""pipeline.py: the input pipeline, in alternating windows as in compare.py. Called by scripts/bench.

reading   flowlua and TensorFlow: image_dataset_from_directory with the same options on the same 2,000 JPEG pictures of 320 x 240
          pixels, decoded and resized to 180 x 180 in batches of 32. Seconds on the wall and of the processor: the latter do not
          depend on what else the machine does.
training  flowlua only: fit of the flowers net from tensors, and from a Dataset of the same batches after cache().

Each peer answers a line on its input with "window <images> <seconds> <seconds of the processor>".
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile

import record

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FLOWLUA = os.path.join(ROOT, "build", "bin", "flowlua")
PICTURES = os.path.join(ROOT, "build", "bench", "pictures")
OWN = [FLOWLUA, os.path.join(HERE, "flowlua_pipeline.lua")]
COMMANDS = {"flowlua": OWN, "tensorflow": [sys.executable, os.path.join(HERE, "tensorflow_pipeline.py")]}


class Peer:
    def __init__(self, name, command):
        self.name, self.rates, self.costs = name, [], []
        self.errors = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True, cwd=ROOT)

    def window(self, keep):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("window "):
                images, seconds, processor = map(float, line.split()[1:])
                if keep:
                    self.rates.append(images / seconds)
                    self.costs.append(1e6 * processor / images)
                return
        self.errors.seek(0)
        sys.exit("bench: %s failed: %s" % (self.name, self.errors.read()[-2000:]))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def alternate(title, peers, windows, path):
    for number in range(windows + 1):                       # the first one warms caches and is left out
        for peer in peers:
            peer.window(number > 0)
    for peer in peers:
        peer.close()
    print("\n%s; medians of %d windows" % (title, windows))
    print("  %-24s %12s %22s %12s %22s" % ("", "images/s", "slowest..fastest", "the first is", "processor an image"))
    for peer in peers:
        ratio = "" if peer is peers[0] else "%.2fx" % (statistics.median(peers[0].rates) / statistics.median(peer.rates))
        print("  %-24s %12.0f %22s %12s %19.0f us" % (peer.name, statistics.median(peer.rates), "%.0f..%.0f" % (
            min(peer.rates), max(peer.rates)), ratio, statistics.median(peer.costs)), flush=True)
    record.keep(path, [record.row("pipeline", title, len(os.sched_getaffinity(0)), "images/s",
                                  {peer.name: statistics.median(peer.rates) for peer in peers})])


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench --pipeline")
    parser.add_argument("--peers", default="flowlua", help="set by scripts/bench; flowlua comes first")
    parser.add_argument("--windows", type=int, default=5)
    parser.add_argument("--json", help="a file to which the figures are added: scripts/peers/record.py describes it")
    options = parser.parse_args()
    if not os.path.exists(os.path.join(PICTURES, "complete")):
        subprocess.run(OWN + ["draw", PICTURES], check=True, cwd=ROOT)
    peers = [Peer(name, COMMANDS[name] + ["read", PICTURES]) for name in options.peers.split(",") if name in COMMANDS]
    alternate("reading: 320x240 JPEG pictures to 180x180 in batches of 32", peers, options.windows, options.json)
    peers = [Peer(name, OWN + [mode, PICTURES]) for name, mode in (("from a cached Dataset", "cached"), ("from tensors", "tensors"))]
    alternate("training: the flowers net", peers, options.windows, None)       # flowlua twice


if __name__ == "__main__":
    main()
