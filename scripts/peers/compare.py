"""compare.py: runs the training nets of every peer in alternating windows and prints one table. Called by scripts/bench.

Each peer is a process that trains the same net on data that stays in memory. It says "ready", then answers every line on its
input with "<images> <seconds>" after one window of training. The windows of the peers alternate, so that a change of the
machine's speed meets all of them; the medians are compared.
"""
import argparse
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FLOWLUA = os.path.join(ROOT, "build", "bin", "flowlua")
COMMANDS = {
    "flowlua": [FLOWLUA, os.path.join(HERE, "flowlua_train.lua")],
    "tensorflow": [sys.executable, os.path.join(HERE, "tensorflow_train.py")],
    "pytorch": [sys.executable, os.path.join(HERE, "pytorch_train.py")],
}


def multiply_adds(net):
    """Multiply-adds of the forward pass per image, those of the first convolution apart (it has no gradient of its input)."""
    if net == "mnist":
        first, rest = 26 * 26 * 32 * 9, 26 * 26 * 32 * 128 + 128 * 10
    else:
        first, rest = 180 * 180 * 16 * 27, 90 * 90 * 32 * 144 + 45 * 45 * 64 * 288 + 22 * 22 * 64 * 128 + 128 * 5
    return first, rest


def training_operations(net):
    """Floating point operations to train on one image by the textbook: forward, gradient of inputs, gradient of weights."""
    first, rest = multiply_adds(net)
    return 2 * (2 * first + 3 * rest)


class Peer:
    def __init__(self, name, net, seconds, threads):
        self.name, self.rates, self.peak = name, [], 0
        start = time.perf_counter()
        self.process = subprocess.Popen(COMMANDS[name] + [net, str(seconds), str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, cwd=ROOT)
        self.expect("ready")
        self.to_ready = time.perf_counter() - start

    def expect(self, word):
        for line in self.process.stdout:
            fields = line.split()
            if fields and fields[0] == word:
                return fields[1:]
        sys.exit("bench: %s ended with status %s before it said %r" % (self.name, self.process.wait(), word))

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


def measure(net, names, windows, seconds, threads, peak):
    peers = [Peer(name, net, seconds, threads) for name in names]
    for _ in range(windows):
        for peer in peers:
            peer.window()
    for peer in peers:
        peer.close()
    print("\n%s: training, float32, median of %d windows of %g s" % (net, windows, seconds))
    print("  %-12s %12s %22s %10s %12s %14s" % ("", "images/s", "slowest..fastest", "flowlua is", "of the peak", "peak memory"))
    for peer in peers:
        print("  %-12s %12.0f %22s %9.2fx %10.0f %% %11.0f MB" % (
            peer.name, peer.rate, "%.0f..%.0f" % (min(peer.rates), max(peer.rates)), peers[0].rate / peer.rate,
            100 * peer.rate * training_operations(net) / (peak * 1e9), peer.peak))


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


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench")
    parser.add_argument("--peers", default="flowlua")
    parser.add_argument("--net", choices=("flowers", "mnist", "both"), default="both")
    parser.add_argument("--windows", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="length of a window")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    names = options.peers.split(",")
    peak = float(subprocess.run([os.path.join(ROOT, "build", "bench", "fma_peak"), str(options.threads)], check=True, capture_output=True,
                                text=True).stdout)
    print("%d threads, %.0f GFLOP/s at most (float32 multiply-adds in registers)" % (options.threads, peak))
    print("'of the peak' counts operations as the textbook does; a net that needs fewer of them can pass 100 %")
    for net in ("flowers", "mnist") if options.net == "both" else (options.net,):
        measure(net, names, options.windows, options.seconds, options.threads, peak)
    start_up()


if __name__ == "__main__":
    main()
