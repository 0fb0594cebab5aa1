"""compare.py: runs the nets of every peer in alternating windows and prints tables. Called by scripts/bench.

Each peer is a process that trains the same net, or predicts with it, on data that stays in memory. It says "ready", then answers
every line on its input with "window <images> <seconds>" after one window of work. The windows of the peers alternate, so that a
change of the machine's speed meets all of them; the medians are compared. flowlua's "ready" is followed by the multiply-adds of
the forward pass per image: those of the first layer with weights, and those of all others.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

import record

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FLOWLUA = os.path.join(ROOT, "build", "bin", "flowlua")
COMMANDS = {
    "flowlua": [FLOWLUA, os.path.join(HERE, "flowlua_peer.lua")],
    "tensorflow": [sys.executable, os.path.join(HERE, "tensorflow_peer.py")],
    "pytorch": [sys.executable, os.path.join(HERE, "pytorch_peer.py")],
    **{engine: [sys.executable, os.path.join(HERE, "engine_peer.py"), engine] for engine in ("onnxruntime", "openvino", "litert")},
}
PREDICTS_ONLY = ("onnxruntime", "openvino", "litert")
NETS = {
    "flowers": "CNN on 180x180x3, batch 32, Adam",
    "mnist": "CNN on 28x28, batch 64, SGD",
    "resnet20": "ResNet-20 on 32x32x3, batch 64, SGD with momentum",
    "mobilenet": "MobileNet 1/4 on 96x96x3, batch 32, Adam",
    "resnet50": "ResNet-50 on 224x224x3, batch 8, SGD with momentum",
    "vgg11": "VGG-11 with one Dense layer on 112x112x3, batch 16, SGD",
    "unet": "small U-Net on 48x48x3, batch 8, Adam",
    "mlp": "Dense 784-512-256-10, batch 128, Adam",
    "densenet": "DenseNet-121 on 96x96x3, batch 16, SGD with momentum",
    "convnext": "two stages of ConvNeXt-T on 64x64x3, batch 32, Adam",
    "autoencoder": "convolutions of 32 channels on 64x64x3, batch 32, Adam",
    "embedding": "Embedding of 20,000 words in 128 for 200 positions, mean, Dense, batch 64, Adam",
    "lstm": "Embedding of 20,000 words in 128 for 150 positions, LSTM of 128, batch 32, Adam",
    "gru": "Embedding of 20,000 words in 128 for 150 positions, GRU of 128, batch 32, Adam",
    "transformer": "two Transformer blocks of width 128, 4 heads, inside 512, on 128 words, batch 32, Adam",
}
USUAL_NETS = ("flowers", "mnist", "resnet20", "mobilenet")
MODES = ("train", "train-bfloat16", "predict", "predict1")
USUAL_MODES = ("train", "predict")


def is_training(mode):
    return mode.startswith("train")


def operations(mode, first, rest):
    """Floating point operations for one image by the textbook. Training: forward, gradient of weights and, except for the first
    layer, gradient of inputs."""
    return 2 * (2 * first + 3 * rest) if is_training(mode) else 2 * (first + rest)


class PeerEnded(Exception):
    pass


class Peer:
    def __init__(self, name, net, mode, seconds, threads):
        self.name, self.rates, self.late, self.peak = name, [], [], 0
        # What the others say while they start is of interest only if they fail.
        self.errors = None if name == "flowlua" else tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen(COMMANDS[name] + [net, mode, str(seconds), str(threads)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors, text=True, cwd=ROOT)
        self.multiply_adds = [int(number) for number in self.expect("ready")]

    def expect(self, word):
        for line in self.process.stdout:
            fields = line.split()
            if fields and fields[0] == word:
                return fields[1:]
        status = self.process.wait()
        if self.errors:
            self.errors.seek(0)
            sys.stderr.write(self.errors.read()[-2000:])
        raise PeerEnded("%s ended with status %s before it said %r" % (self.name, status, word))

    def window(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        images, seconds, *late = self.expect("window")
        self.rates.append(float(images) / float(seconds))
        self.late += map(float, late)

    def close(self):
        self.process.stdin.close()
        _, _, usage = os.wait4(self.process.pid, 0)
        self.peak = usage.ru_maxrss / 1024

    @property
    def rate(self):
        return statistics.median(self.rates)


def neighbour():
    """A program that keeps the last of our cores busy."""
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    os.sched_setaffinity(busy.pid, {max(os.sched_getaffinity(0))})
    return busy


def measure(net, mode, options, peak):
    """One table; the peers, flowlua first."""
    names = [name for name in options.peers if name not in PREDICTS_ONLY or not is_training(mode)]
    peers = []
    for name in names:
        try:
            peers.append(Peer(name, net, mode, options.seconds, options.threads))
        except PeerEnded as ended:
            if name == "flowlua":
                raise
            print("\n%s, %s: left out: %s" % (net, mode, ended), flush=True)
    busy = neighbour() if options.busy else None
    try:
        for _ in range(options.windows):
            for peer in peers:
                peer.window()
    finally:
        if busy:
            busy.kill()
            busy.wait()
    for peer in peers:
        peer.close()
    count = operations(mode, *peers[0].multiply_adds)
    what = {"train": "training", "train-bfloat16": "training in bfloat16", "predict": "prediction at batch 32",
            "predict1": "prediction of one at a time"}[mode]
    print("\n%s, %s%s: %s; %.0f million operations an image" % (net, what, ", one core busy" if busy else "", NETS[net], count / 1e6))
    print("  %-12s %12s %22s %12s %12s %14s" % ("", "images/s", "slowest..fastest", "flowlua is", "of the peak", "peak memory")
          + ("  99th percentile" if mode == "predict1" else ""))
    for peer in peers:
        ratio = "" if peer is peers[0] else "%.2fx" % (peers[0].rate / peer.rate)
        print("  %-12s %12.0f %22s %12s %10.0f %% %11.0f MB" % (
            peer.name, peer.rate, "%.0f..%.0f" % (min(peer.rates), max(peer.rates)), ratio,
            100 * peer.rate * count / (peak * 1e9), peer.peak) +
            (" %13.0f us" % statistics.median(peer.late) if peer.late else ""), flush=True)
    more = {"busy": True} if options.busy else {}
    if peers[0].late:
        more["percentile_99_us"] = {peer.name: round(statistics.median(peer.late), 1) for peer in peers}
    record.keep(options.json, [record.row(
        "nets", "%s, %s%s" % (net, what, ", one core busy" if busy else ""), options.threads, "images/s",
        {peer.name: peer.rate for peer in peers}, peak_memory_mb={peer.name: round(peer.peak) for peer in peers}, **more)])
    return peers


def summary(results):
    """A line for each table: flowlua and the faster of the others."""
    print("\n%-22s %18s   %-30s %12s" % ("images/s", "flowlua", "the faster of the others", "flowlua is"))
    for (net, mode), (own, *others) in results.items():
        if not others:
            continue
        best = max(others, key=lambda peer: peer.rate)
        print("%-22s %18.0f   %-30s %11.2fx" % ("%s, %s" % (net, mode), own.rate, "%s %.0f" % (best.name, best.rate), own.rate / best.rate))


def start_up():
    """Median milliseconds to start the program and make a tensor; peak memory of the first example."""
    code = "local flow = require 'flow'; assert(#flow.zeros({ 3 }) == 3)"
    times = []
    for _ in range(20):
        start = time.perf_counter()
        subprocess.run([FLOWLUA, "-e", code], check=True, cwd=ROOT)
        times.append(1000 * (time.perf_counter() - start))
    example = subprocess.Popen([FLOWLUA, "lua/examples/mnist.lua", "--epochs", "1"], stdout=subprocess.DEVNULL, cwd=ROOT)
    _, status, usage = os.wait4(example.pid, 0)
    if status != 0:
        sys.exit("bench: lua/examples/mnist.lua failed")
    print("\nflowlua: from the command to the first tensor %.1f ms (median of %d); peak memory of lua/examples/mnist.lua %.0f MB" % (
        statistics.median(times), len(times), usage.ru_maxrss / 1024))


def list_of(known, words):
    """An argument's type: names of `known`, separated by commas, or a word for some of them."""
    def parse(text):
        names = list(words[text]) if text in words else text.split(",")
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError("there is no %r; choose from %s" % (name, ", ".join((*words, *known))))
        return names
    return parse


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench")
    parser.add_argument("--peers", default="flowlua", type=list_of(COMMANDS, {"all": COMMANDS}),
                        help="set by scripts/bench; flowlua comes first")
    parser.add_argument("--net", default="usual", type=list_of(NETS, {"usual": USUAL_NETS, "all": NETS}),
                        help="usual, all, or some of %s, separated by commas" % ", ".join(NETS))
    parser.add_argument("--mode", default="both", type=list_of(MODES, {"both": USUAL_MODES, "all": MODES}),
                        help="train, predict, both, train-bfloat16: under mixed_bfloat16, or predict1: one at a time, with the 99th "
                             "percentile of its time")
    parser.add_argument("--json", help="a file to which the figures are added: scripts/peers/record.py describes it")
    parser.add_argument("--busy", action="store_true", help="while another program keeps one core busy")
    parser.add_argument("--windows", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="length of a window")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    peak = float(subprocess.run([os.path.join(ROOT, "build", "bench", "fma_peak"), str(options.threads)], check=True, capture_output=True,
                                text=True).stdout)
    print("%d threads, %.0f GFLOP/s at most (float32 multiply-adds in registers); medians of %d windows of %g s" % (
        options.threads, peak, options.windows, options.seconds))
    print("'of the peak' counts operations as the textbook does; a net that needs fewer of them can pass 100 %")
    try:
        results = {(net, mode): measure(net, mode, options, peak) for net in options.net for mode in options.mode}
    except PeerEnded as ended:
        sys.exit("bench: %s" % ended)
    if len(options.peers) > 1:
        summary(results)
    start_up()


if __name__ == "__main__":
    main()
