"""eager.py: single calls on tensors, beside NumPy and PyTorch. Called by scripts/bench --eager.

A peer is a process that answers a line "ROW<tab>SECONDS" with "window <calls> <seconds>" after a window of about that length, or with
"window 0 0" where it does not have the row. The windows of the peers alternate, and the fastest window of each is compared: what else
the machine does only makes a window slower. flowlua's results are left to the collector; --closed closes them.
--clock processor counts the processor's time instead of time on the wall, which says something on a busy machine, too,
where --threads is 1.
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile

import record

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FLOWLUA = os.path.join(ROOT, "build", "bin", "flowlua")
COMMANDS = {
    "flowlua": [FLOWLUA, os.path.join(HERE, "eager_flowlua.lua")],
    "numpy": [sys.executable, os.path.join(HERE, "eager_peer.py")],
    "pytorch": [sys.executable, os.path.join(HERE, "eager_peer.py")],
}


def names_of_rows():
    with open(os.path.join(HERE, "eager_flowlua.lua")) as file:
        return re.findall(r'^rows\["(.*?)"\]', file.read(), re.MULTILINE)


class Peer:
    def __init__(self, name, folder, options):
        self.name, self.errors = name, tempfile.TemporaryFile(mode="w+")
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(options.threads))
        self.process = subprocess.Popen(COMMANDS[name] + [folder, options.clock, str(options.threads),
                                        "closed" if options.closed else "left", name], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors, text=True, cwd=ROOT, env=dict(os.environ, **threads))
        self.expect("ready")

    def expect(self, word):
        for line in self.process.stdout:
            fields = line.split()
            if fields and fields[0] == word:
                return fields[1:]
        self.errors.seek(0)
        sys.exit("bench: %s failed: %s" % (self.name, self.errors.read()[-2000:]))

    def window(self, row, seconds):
        """Microseconds of a call, or None."""
        self.process.stdin.write("%s\t%g\n" % (row, seconds))
        self.process.stdin.flush()
        calls, took = map(float, self.expect("window"))
        return 1e6 * took / calls if calls else None

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def write_table(folder):
    """100,000 rows of 20 numbers with a header."""
    with open(os.path.join(folder, "table.csv"), "w") as file:
        file.write(",".join("c%d" % i for i in range(20)) + "\n")
        state = 1
        for _ in range(100000):
            fields = []
            for _ in range(20):
                state = (1103515245 * state + 12345) % 2147483648
                fields.append("%.6f" % (state / 2147483648 * 200 - 100))
            file.write(",".join(fields) + "\n")


def main():
    rows = names_of_rows()
    parser = argparse.ArgumentParser(prog="scripts/bench --eager")
    parser.add_argument("--peers", default="flowlua", help="set by scripts/bench; flowlua comes first")
    parser.add_argument("--rows", default="", help="only rows in whose names one of these words, separated by commas, is")
    parser.add_argument("--windows", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.1, help="length of a window")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--json", help="a file to which the figures are added: scripts/peers/record.py describes it")
    parser.add_argument("--clock", choices=("wall", "processor"), default="wall", help="processor: its time, for one thread")
    parser.add_argument("--closed", action="store_true", help="flowlua's results are closed by hand, not left to the collector")
    options = parser.parse_args()
    wanted = [row for row in rows if any(word in row for word in options.rows.split(","))]
    if not wanted:
        sys.exit("bench: there are no such rows; choose from: %s" % "; ".join(rows))
    peers = [name for name in options.peers.split(",") if name in COMMANDS]
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        if any("csv" in row for row in wanted):
            write_table(folder)
        peers = [Peer(name, folder, options) for name in peers]
        print("us a call, %d threads, %s; fastest of %d windows of %g s" % (
            options.threads, "processor's time" if options.clock == "processor" else "on the wall", options.windows, options.seconds))
        print("%-32s" % "" + "".join("%12s" % peer.name for peer in peers) + ("%12s" % "flowlua is" if len(peers) > 1 else ""))
        for row in wanted:
            times = [peer.window(row, options.seconds) for peer in peers]
            for _ in range(options.windows - 1):
                times = [best and min(best, peer.window(row, options.seconds)) for peer, best in zip(peers, times)]
            others = [time for time in times[1:] if time]
            line = "%-32s" % row + "".join("%12s" % ("%.1f" % time if time else "-") for time in times)
            record.keep(options.json, [record.row(
                "eager", row + (", closed" if options.closed else ", left to the collector"), options.threads, "us",
                {peer.name: time for peer, time in zip(peers, times) if time}, less_is_better=True)])
            if others:
                ratios.append(min(others) / times[0])
                line += "%11.2fx" % ratios[-1]
            print(line, flush=True)
        for peer in peers:
            peer.close()
    if ratios:
        print("%d rows: median %.2fx, slowest %.2fx, %d below 0.8x" % (
            len(ratios), statistics.median(ratios), min(ratios), sum(ratio < 0.8 for ratio in ratios)))


if __name__ == "__main__":
    main()
