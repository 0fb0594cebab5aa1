"""servers.py: what parameter servers cost: how fast their variables move against a plain copy through the loopback, and what two workers
of an asynchronous training with one server compute, each, against a lone process. Called by scripts/bench --servers.

Variables move through memory that the processes share and, with FLOW_SHARED_MEMORY=0, through TCP. All are measured in turns, in rounds, so
that a change of the machine's speed meets all of them; the medians are compared. Server and workers share the cores of the machine: on two
cores two workers and a server get two thirds of a core each when they all compute.
"""
import argparse
import os
import re
import socket
import statistics
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FLOWLUA = os.path.join(ROOT, "build", "bin", "flowlua")
SCRIPT = os.path.join(HERE, "servers.lua")
BYTES = 64 << 20
PIECE = 1 << 20
LIMIT = 300          # seconds that a job may take


def rates_of(arguments, environment=None):
    """What a job prints: bytes or images a second, each time that it was measured."""
    done = subprocess.run([FLOWLUA] + arguments, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=ROOT, timeout=LIMIT,
                          env=dict(os.environ, **(environment or {})), check=False)
    found = re.findall(r"^(?:\[[^]]*\] *)?rate (\d+) ([\d.]+)$", done.stdout, re.MULTILINE)
    if done.returncode != 0 or not found:
        raise SystemExit("bench: %s ended with status %d:\n%s" % (" ".join(arguments), done.returncode, done.stderr[-2000:]))
    return [float(count) / float(seconds) for count, seconds in found]


def plain_copy(times):
    """The same bytes from another process through a socket of the loopback, into one buffer: bytes a second."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    child = os.fork()
    if child == 0:
        with socket.create_connection(("127.0.0.1", port)) as own:
            data = bytes(BYTES)
            while own.recv(1):
                own.sendall(data)
        os._exit(0)
    own, _ = listener.accept()
    listener.close()
    buffer, rates = memoryview(bytearray(BYTES)), []
    for _ in range(times):
        start, filled = time.monotonic(), 0
        own.sendall(b"x")
        while filled < BYTES:
            filled += own.recv_into(buffer[filled:filled + PIECE])
        rates.append(BYTES / (time.monotonic() - start))
    own.close()
    os.waitpid(child, 0)
    return rates


def launched(workers, *arguments):
    return ["launch", "--workers", str(workers), "--parameter-servers", "1", "--threads", "1", SCRIPT, "--"] + list(arguments)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--windows", type=int, default=3)
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()
    copy, shared, connection, alone, workers = [], [], [], [], []
    for _ in range(options.windows):
        copy.append(statistics.median(plain_copy(11)[1:]))
        shared.append(statistics.median(rates_of(launched(1, "move", "11"))[1:]))
        connection.append(statistics.median(rates_of(launched(1, "move", "11"), {"FLOW_SHARED_MEMORY": "0"})[1:]))
        alone += rates_of([SCRIPT, "one", str(options.steps)])
        workers += rates_of(launched(2, "workers", str(options.steps)))
    base = statistics.median(copy)
    print("%-64s %8s %18s %8s" % ("64 MB from another process", "GB/s", "slowest..fastest", "ratio"))
    for name, rates in (("plain copy through the loopback", copy), ("pull from a parameter server, shared memory", shared),
                        ("pull from a parameter server, FLOW_SHARED_MEMORY=0", connection)):
        print("%-64s %8.2f %18s %7.2fx" % (name, statistics.median(rates) / 1e9, "%.2f..%.2f" % (min(rates) / 1e9, max(rates) / 1e9),
                                           statistics.median(rates) / base))
    one = statistics.median(alone)
    print("\n%-64s %8s %18s %8s" % ("512 images a step, 1 thread each", "images/s", "slowest..fastest", "a worker"))
    for name, rates, count in (("one process", alone, 1), ("2 workers, 1 parameter server", workers, 2)):
        print("%-64s %8.0f %18s %7.2fx" % (name, statistics.median(rates), "%.0f..%.0f" % (min(rates), max(rates)),
                                           statistics.median(rates) / count / one))


if __name__ == "__main__":
    main()
