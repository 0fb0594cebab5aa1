"""scaling.py: what a second replica is worth: images a second of one replica and of two, in flowlua, PyTorch and TensorFlow, and how long
a job of two takes from its start to the end of its first step. Called by scripts/bench --scaling.

The net is the CNN of TensorFlow's tutorials on distributed training, 64 images a replica and step, plain SGD; the data stays in memory.
Every replica computes with one thread. A job is one or several processes. It prints "first" when its first step has ended, and, after more
steps, "rate <images> <seconds>": the images of all replicas. Jobs run one after the other, in rounds, so that a change of the
machine's speed meets all of them; the medians are compared. A run beside which other programs were busy is made again (--tries). A job
that fails is reported and leaves the others alone.
"""
import argparse
import json
import os
import re
import resource
import shlex
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FLOWLUA = os.path.join(ROOT, "build", "bin", "flowlua")
BATCH = 64
LIMIT = 120          # seconds that a job may take
OTHERS = 0.1         # CPUs that other programs may keep busy during a run


def busy_seconds():
    """CPU seconds since the start of the machine, and those of the processes that this one has waited for, with their children."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, soft_irq, steal = [int(field) for field in file.readline().split()[1:9]]
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (user + nice + system + irq + soft_irq + steal) / os.sysconf("SC_CLK_TCK"), own.ru_utime + own.ru_stime


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


# A job's processes as (arguments, environment) for a number of steps.

def flowlua(kind):
    return lambda steps: [([FLOWLUA, os.path.join(HERE, "scaling_flowlua.lua"), kind, str(steps)], {})]


def flowlua_workers(engine, shared_memory):
    def processes(steps):
        arguments = [FLOWLUA, "launch", "--workers", "2", "--threads", "1", "--engine", engine.lower(),
                     os.path.join(HERE, "scaling_flowlua.lua"), "--", engine, str(steps)]
        return [(arguments, {} if shared_memory else {"FLOW_SHARED_MEMORY": "0"})]
    return processes


def pytorch_one(steps):
    return [([sys.executable, os.path.join(HERE, "scaling_pytorch.py"), "one", str(steps)], {})]


def pytorch_ddp(steps):
    port = free_ports(1)[0]
    return [([sys.executable, os.path.join(HERE, "scaling_pytorch.py"), "ddp", str(steps)],
             {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}) for rank in range(2)]


# Two workers in separate network namespaces, whose packets a program of ours carries: as root. 1 Gbit/s each way, 5 ms one way.
LINK = "5,1000"
LINK_ADDRESSES = ["10.99.0.1", "10.99.0.2"]


def linked(commands):
    return [([os.path.join(ROOT, "build", "bin", "slow_link"), LINK] + commands, {"FLOW_SHARED_MEMORY": "0", "FLOW_INSECURE": "1"})]


def flowlua_linked(steps):
    workers = ["%s:2222" % address for address in LINK_ADDRESSES]
    return linked(["TF_CONFIG=%s exec %s RING %d" % (
        shlex.quote(json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}})),
        shlex.join([FLOWLUA, os.path.join(HERE, "scaling_flowlua.lua")]), steps) for index in range(2)])


def pytorch_linked(steps):
    return linked(["RANK=%d WORLD_SIZE=2 MASTER_ADDR=%s MASTER_PORT=29500 GLOO_SOCKET_IFNAME=slow exec %s ddp %d" % (
        rank, LINK_ADDRESSES[0], shlex.join([sys.executable, os.path.join(HERE, "scaling_pytorch.py")]), steps) for rank in range(2)])


def tensorflow_one(steps):
    return [([sys.executable, os.path.join(HERE, "scaling_tensorflow.py"), "one", str(steps)], {})]


def tensorflow_workers(steps):
    workers = ["127.0.0.1:%d" % port for port in free_ports(2)]
    return [([sys.executable, os.path.join(HERE, "scaling_tensorflow.py"), "workers", str(steps)],
             {"TF_CONFIG": json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}})}) for index in range(2)]


# peer, what it runs, its number of replicas, its processes; the first job of a peer is the one replica that others are compared with
JOBS = [
    ("flowlua", "one replica", 1, flowlua("one")),
    ("flowlua", "MirroredStrategy", 2, flowlua("mirrored")),
    ("flowlua", "2 workers, MPI", 2, flowlua_workers("MPI", True)),
    ("flowlua", "2 workers, MPI, FLOW_SHARED_MEMORY=0", 2, flowlua_workers("MPI", False)),
    ("flowlua", "2 workers, RING", 2, flowlua_workers("RING", True)),
    ("flowlua", "2 workers, RING, FLOW_SHARED_MEMORY=0", 2, flowlua_workers("RING", False)),
    ("flowlua", "2 workers, RING, 1 Gbit/s and 5 ms", 2, flowlua_linked),
    ("pytorch", "one process", 1, pytorch_one),
    ("pytorch", "DistributedDataParallel, gloo", 2, pytorch_ddp),
    ("pytorch", "DDP, gloo, 1 Gbit/s and 5 ms", 2, pytorch_linked),
    ("tensorflow", "one process", 1, tensorflow_one),
    ("tensorflow", "MultiWorkerMirroredStrategy, RING", 2, tensorflow_workers),
]


class Failed(Exception):
    pass


class Job:
    def __init__(self, peer, what, replicas, processes):
        self.peer, self.what, self.replicas, self.processes = peer, what, replicas, processes
        self.steps, self.rates, self.first, self.others, self.error = 100, [], [], [], None

    def run(self):
        """Runs the job once: images a second, and seconds to the end of the first step."""
        found, start, running = {}, time.monotonic(), []
        errors = tempfile.TemporaryFile(mode="w+")

        def read(stream):
            for line in stream:
                match = re.match(r"(?:\[[^]]*\] *)?(first|rate)\b(.*)", line)        # launchers put the task before it
                if match:
                    found[match.group(1)] = (time.monotonic() - start, match.group(2).split())

        for arguments, environment in self.processes(self.steps):
            process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT,
                                       env=dict(os.environ, **environment), start_new_session=True)
            reader = threading.Thread(target=read, args=(process.stdout,))
            reader.start()
            running.append((process, reader))
        reason = None
        try:
            for process, _ in running:
                try:
                    status = process.wait(max(0.1, start + LIMIT - time.monotonic()))
                    if status != 0 and reason is None:
                        reason = "ended with status %d" % status
                except subprocess.TimeoutExpired:
                    reason = "was still running after %d s" % LIMIT
                if reason:
                    break
        finally:
            for process, _ in running:         # some are left after a failure or an interrupt
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
        for process, reader in running:
            process.wait()
            reader.join()
        if reason or "first" not in found or "rate" not in found:
            errors.seek(0)
            raise Failed("%s\n%s" % (reason or "did not print its figures", "".join(errors.readlines()[-12:])))
        images, seconds = found["rate"][1]
        return float(images) / float(seconds), found["first"][0]

    def prepare(self, seconds):
        """One run that does not count: files come into memory, and the number of steps for about this many seconds shows."""
        rate, _ = self.run()
        self.steps = 100 * max(1, round(seconds * rate / (self.replicas * BATCH) / 100))

    def measure(self, action):
        if self.error:
            return
        try:
            action(self)
        except (Failed, OSError) as error:
            self.error = str(error).strip()
            print("bench: %s, %s: %s" % (self.peer, self.what, self.error), file=sys.stderr, flush=True)

    def count(self, tries):
        """A run that counts: the first one without other programs, else the one with the fewest of them."""
        runs = []
        while len(runs) < tries and not (runs and runs[-1][0] < OTHERS):
            start, (machine, own) = time.monotonic(), busy_seconds()
            rate, first = self.run()
            machine, own = (after - before for after, before in zip(busy_seconds(), (machine, own)))
            runs.append((max(0, machine - own) / (time.monotonic() - start), rate, first))
        others, rate, first = min(runs)
        self.rates.append(rate)
        self.first.append(first)
        self.others.append(others)


def report(jobs):
    print("\n%-52s %10s %18s %16s %12s" % ("64 images a replica and step, 1 thread each", "images/s", "slowest..fastest", "of one replica",
                                           "first step"))
    one = {}
    for job in jobs:
        name = "%s, %s" % (job.peer, job.what)
        if job.error or not job.rates:
            print("%-52s failed: %s" % (name, (job.error or "nothing was measured").splitlines()[0]))
            continue
        rate = statistics.median(job.rates)
        if job.replicas == 1:
            one[job.peer] = rate
        ratio = "%.2fx" % (rate / one[job.peer]) if job.replicas > 1 and job.peer in one else ""
        print("%-52s %10.0f %18s %16s %10.2f s" % (name, rate, "%.0f..%.0f" % (min(job.rates), max(job.rates)), ratio,
                                                   statistics.median(job.first)))
    rates = {job.peer: statistics.median(job.rates) for job in jobs if job.processes in (flowlua_linked, pytorch_linked) and job.rates}
    if len(rates) == 2:
        print("over that link flowlua trains %.2fx as many images as pytorch" % (rates["flowlua"] / rates["pytorch"]))
    for peer in sorted({job[0] for job in JOBS} - {job.peer for job in jobs}):
        print("%s was not measured: it is not installed, or was not asked for: the head of scripts/bench says how" % peer)
    disturbed = max((max(job.others) for job in jobs if job.others), default=0)
    if disturbed >= OTHERS:
        print("other programs kept up to %.1f CPUs busy meanwhile: the figures are too low, and not by the same for all" % disturbed)


def write(jobs, path, options):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"batch_per_replica": BATCH, "threads_per_replica": 1, "seconds": options.seconds,
                   "jobs": [{"peer": job.peer, "what": job.what, "replicas": job.replicas, "images_per_second": job.rates,
                             "seconds_to_first_step": job.first, "other_programs_cpus": job.others, "error": job.error}
                            for job in jobs]}, file, indent=1)
    print("\nall of it: %s" % os.path.relpath(path, ROOT))


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench --scaling")
    parser.add_argument("--peers", default="flowlua", help="set by scripts/bench")
    parser.add_argument("--only", default="", help="jobs whose names hold this text, and the one replica of each peer")
    parser.add_argument("--windows", type=int, default=5, help="runs of each job that count")
    parser.add_argument("--tries", type=int, default=3, help="runs at most until one is not disturbed by other programs")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of what is measured of a run, about")
    options = parser.parse_args()
    jobs = [Job(*job) for job in JOBS if job[0] in options.peers.split(",") and (job[2] == 1 or options.only.lower() in job[1].lower())]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for job in jobs:
            job.measure(lambda job: job.prepare(options.seconds))
        for _ in range(options.windows):
            for job in jobs:
                job.measure(lambda job: job.count(options.tries))
    except KeyboardInterrupt:
        print("bench: interrupted: what was measured until then", file=sys.stderr)
    report(jobs)
    write(jobs, os.path.join(ROOT, "build", "bench", "scaling.json"), options)
    sys.exit(1 if any(job.error for job in jobs) else 0)


if __name__ == "__main__":
    main()
