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

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FLOWLUA = os.path.join(ROOT, "build", "bin", "flowlua")
COMMANDS = {
    "flowlua": [FLOWLUA, os.path.join(HERE, "flowlua_peer.lua")],
    "tensorflow": [sys.executable, os.path.join(HERE, "tensorflow_peer.py")],
    "pytorch": [sys.executable, os.path.join(HERE, "pytorch_peer.py")],
}
NETS = {
    "flowers": "CNN on 180x180x3, batch 32, Adam",
    "mnist": "CNN on 28x28, batch 64, SGD",
    "resnet20": "ResNet-20 on 32x32x3, batch 64, SGD with momentum",
    "mobilenet": "MobileNet 1/4 on 96x96x3, batch 32, Adam",
}
MODES = ("train", "predict")


def operations(mode, first, rest):
    """Floating point operations for one image by the textbook. Training: forward, gradient of weights and, but for the first
    layer, gradient of inputs."""
    return 2 * (2 * first + 3 * rest) if mode == "train" else 2 * (first + rest)


class Peer:
    def __init__(self, name, net, mode, seconds, threads):
        self.name, self.rates, self.peak = name, [], 0
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
            sys.stderr.write(self.errors.read())
        sys.exit("bench: %s ended with status %s before it said %r" % (self.name, status, word))

    def window(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        images, seconds = self.expect("window")
        self.rates.append(float(images) / float(seconds))

    def close(self):
        self.process.stdin.close()
        _, _, usage = os.wait4(self.process.pid, 0)
        self.peak = usage.ru_maxrss / 1024

    @property
    def rate(self):
        return statistics.median(self.rates)


def measure(net, mode, options, peak):
    """One table; the peers, flowlua first."""
    peers = [Peer(name, net, mode, options.seconds, options.threads) for name in options.peers]
    for _ in range(options.windows):
        for peer in peers:
            peer.window()
    for peer in peers:
        peer.close()
    count = operations(mode, *peers[0].multiply_adds)
    print("\n%s, %s: %s; %.0f million operations an image" % (net, {"train": "training", "predict": "prediction at batch 32"}[mode],
                                                                NETS[net], count / 1e6))
    print("  %-12s %12s %22s %12s %12s %14s" % ("", "images/s", "slowest..fastest", "flowlua is", "of the peak", "peak memory"))
    for peer in peers:
        ratio = "" if peer is peers[0] else "%.2fx" % (peers[0].rate / peer.rate)
        print("  %-12s %12.0f %22s %12s %10.0f %% %11.0f MB" % (
            peer.name, peer.rate, "%.0f..%.0f" % (min(peer.rates), max(peer.rates)), ratio,
            100 * peer.rate * count / (peak * 1e9), peer.peak), flush=True)
    return peers


def summary(results):
    """A line for each table: flowlua and the faster of the others."""
    print("\n%-22s %18s   %-30s %12s" % ("images/s", "flowlua", "the faster of the others", "flowlua is"))
    for (net, mode), (own, *others) in results.items():
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


def list_of(known, every):
    """An argument's type: names of `known`, separated by commas, or the word `every` for all of them."""
    def parse(text):
        names = list(known) if text == every else text.split(",")
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError("there is no %r; choose from %s, %s" % (name, every, ", ".join(known)))
        return names
    return parse


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench")
    parser.add_argument("--peers", default="flowlua", type=list_of(COMMANDS, "all"), help="set by scripts/bench; flowlua comes first")
    parser.add_argument("--net", default="all", type=list_of(NETS, "all"), help="all, or some of %s, separated by commas" % ", ".join(NETS))
    parser.add_argument("--mode", default="both", type=list_of(MODES, "both"), help="train, predict or both")
    parser.add_argument("--windows", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="length of a window")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    peak = float(subprocess.run([os.path.join(ROOT, "build", "bench", "fma_peak"), str(options.threads)], check=True, capture_output=True,
                                text=True).stdout)
    print("%d threads, %.0f GFLOP/s at most (float32 multiply-adds in registers); medians of %d windows of %g s" % (
        options.threads, peak, options.windows, options.seconds))
    print("'of the peak' counts operations as the textbook does; a net that needs fewer of them can pass 100 %")
    results = {(net, mode): measure(net, mode, options, peak) for net in options.net for mode in options.mode}
    if len(options.peers) > 1:
        summary(results)
    start_up()


if __name__ == "__main__":
    main()
