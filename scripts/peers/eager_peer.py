"""eager_peer.py FOLDER CLOCK THREADS RESULTS NAME: NumPy's or PyTorch's side of eager.py, which describes the rows and the conversation."""
import sys
import time

import numpy as np

folder, clock, threads, peer = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[5]
now = time.process_time if clock == "processor" else time.perf_counter
random = np.random.default_rng(1)
rows = {}


def uniform(*shape):
    return (2 * random.random(shape, dtype="float32") - 1).astype("float32")


def whole(size, most, dtype="int32"):
    return random.integers(0, most, size).astype(dtype)


def numpy_rows():
    def add(a, b):
        return lambda: a + b

    def ten(a, b):
        def run():
            x = a
            for _ in range(5):
                x = x * b + a
            return x
        return run

    def each(x):
        return lambda: sum(x[i].item() for i in range(1000))

    def top(x):
        def run():
            at = np.argpartition(x, -5, -1)[:, -5:]
            values = np.take_along_axis(x, at, -1)
            order = np.argsort(-values, -1)
            return np.take_along_axis(values, order, -1), np.take_along_axis(at, order, -1)
        return run

    def of(x, f):
        return lambda: f(x)

    for text, n in (("1e5", 10 ** 5), ("1e6", 10 ** 6), ("1e7", 10 ** 7)):
        rows["sum " + text] = lambda n=n: of(uniform(n), np.sum)
        rows["add " + text] = lambda n=n: add(uniform(n), uniform(n))
    for text, function in (("max", np.max), ("std", np.std), ("cumsum", np.cumsum), ("exp", np.exp), ("tanh", np.tanh), ("sin", np.sin),
                           ("sort", np.sort)):
        rows[text + " 1e6"] = lambda function=function: of(uniform(10 ** 6), function)
    rows["sum {131072, 3}, last"] = lambda: of(uniform(131072, 3), lambda x: x.sum(-1))
    rows["sum {1000, 1000}, first"] = lambda: of(uniform(1000, 1000), lambda x: x.sum(0))
    rows["argmax {1000, 1000}"] = lambda: of(uniform(1000, 1000), lambda x: x.argmax(-1))
    rows["add 10"] = lambda: add(uniform(10), uniform(10))
    rows["add i32 1e6"] = lambda: add(whole(10 ** 6, 1000), whole(10 ** 6, 1000))
    rows["+ column {1000, 1000}"] = lambda: add(uniform(1000, 1000), uniform(1000, 1))
    rows["ten ops 1e5"] = lambda: ten(uniform(10 ** 5), uniform(10 ** 5))
    rows["clip 1e6"] = lambda: of(uniform(10 ** 6), lambda x: np.clip(x, -0.5, 0.5))
    rows["where 1e6"] = lambda: (lambda a, b, c: lambda: np.where(c, a, b))(uniform(10 ** 6), uniform(10 ** 6), uniform(10 ** 6) < 0)
    rows["pow 1.7 1e6"] = lambda: of(abs(uniform(10 ** 6)), lambda x: x ** np.float32(1.7))
    for text, start, dtype in (("f32 to i32", "float32", "int32"), ("i32 to f32", "int32", "float32"), ("u8 to f32", "uint8", "float32"),
                               ("f32 to f64", "float32", "float64"), ("f32 to f16", "float32", "float16")):
        rows["cast %s 1e6" % text] = lambda start=start, dtype=dtype: of(
            uniform(10 ** 6) if start == "float32" else whole(10 ** 6, 200, start), lambda x: x.astype(dtype))
    rows["concat 2 x {500, 1000}, first"] = lambda: of(uniform(500, 1000), lambda x: np.concatenate([x, x], 0))
    rows["concat 2 x {1000, 500}, last"] = lambda: of(uniform(1000, 500), lambda x: np.concatenate([x, x], 1))
    rows["slice of {1000, 1000}, copied"] = lambda: of(uniform(1000, 1000), lambda x: x[100:900, 100:900].copy())
    rows["transpose {1000, 1000}, copied"] = lambda: of(uniform(1000, 1000), lambda x: x.T.copy())
    rows["take 1e4 rows of {1e5, 64}"] = lambda: (lambda t, at: lambda: t[at])(uniform(10 ** 5, 64), whole(10 ** 4, 10 ** 5))
    rows["pad {32, 64, 64, 16} by 1"] = lambda: of(uniform(32, 64, 64, 16), lambda x: np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0))))
    rows["top_k 5 of {1000, 1000}"] = lambda: top(uniform(1000, 1000))
    rows["sort {1000, 1000}, last"] = lambda: of(uniform(1000, 1000), np.sort)
    rows["argsort 1e5"] = lambda: of(uniform(10 ** 5), lambda x: np.argsort(x, kind="stable"))
    rows["random uniform 1e6"] = lambda: lambda: random.random(10 ** 6, dtype="float32")
    rows["random normal 1e6"] = lambda: lambda: random.standard_normal(10 ** 6, dtype="float32")
    rows["random integers 1e6"] = lambda: lambda: random.integers(0, 1000, 10 ** 6, dtype="int32")
    rows["product f32 512"] = lambda: of(uniform(512, 512), lambda x: x @ x)
    rows["product f32 64"] = lambda: of(uniform(64, 64), lambda x: x @ x)
    rows["product f64 512"] = lambda: of(uniform(512, 512).astype("float64"), lambda x: x @ x)
    rows["product 64 x f32 64"] = lambda: of(uniform(64, 64, 64), lambda x: x @ x)
    rows["item 1000 times"] = lambda: each(uniform(1000))
    try:
        import pandas
        rows["load_csv 1e5 x 20"] = lambda: lambda: pandas.read_csv(folder + "/table.csv", dtype="float32")
    except ImportError:
        rows["load_csv 1e5 x 20"] = lambda: lambda: np.loadtxt(folder + "/table.csv", dtype="float32", delimiter=",", skiprows=1)


def torch_rows():
    import torch
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    tensor = torch.from_numpy

    def floats(*shape):
        return tensor(uniform(*shape))

    def of(x, f):
        return lambda: f(x)

    def add(a, b):
        return lambda: a + b

    def ten(a, b):
        def run():
            x = a
            for _ in range(5):
                x = x * b + a
            return x
        return run

    def each(x):
        return lambda: sum(x[i].item() for i in range(1000))

    for text, n in (("1e5", 10 ** 5), ("1e6", 10 ** 6), ("1e7", 10 ** 7)):
        rows["sum " + text] = lambda n=n: of(floats(n), torch.sum)
        rows["add " + text] = lambda n=n: add(floats(n), floats(n))
    for text, function in (("max", torch.max), ("std", lambda x: torch.std(x, correction=0)), ("cumsum", lambda x: torch.cumsum(x, 0)),
                           ("exp", torch.exp), ("tanh", torch.tanh), ("sin", torch.sin), ("sort", lambda x: torch.sort(x, stable=True))):
        rows[text + " 1e6"] = lambda function=function: of(floats(10 ** 6), function)
    rows["sum {131072, 3}, last"] = lambda: of(floats(131072, 3), lambda x: x.sum(-1))
    rows["sum {1000, 1000}, first"] = lambda: of(floats(1000, 1000), lambda x: x.sum(0))
    rows["argmax {1000, 1000}"] = lambda: of(floats(1000, 1000), lambda x: x.argmax(-1))
    rows["add 10"] = lambda: add(floats(10), floats(10))
    rows["add i32 1e6"] = lambda: add(tensor(whole(10 ** 6, 1000)), tensor(whole(10 ** 6, 1000)))
    rows["+ column {1000, 1000}"] = lambda: add(floats(1000, 1000), floats(1000, 1))
    rows["ten ops 1e5"] = lambda: ten(floats(10 ** 5), floats(10 ** 5))
    rows["clip 1e6"] = lambda: of(floats(10 ** 6), lambda x: torch.clamp(x, -0.5, 0.5))
    rows["where 1e6"] = lambda: (lambda a, b, c: lambda: torch.where(c, a, b))(floats(10 ** 6), floats(10 ** 6), floats(10 ** 6) < 0)
    rows["pow 1.7 1e6"] = lambda: of(floats(10 ** 6).abs(), lambda x: x ** 1.7)
    rows["softmax {1000, 1000}"] = lambda: of(floats(1000, 1000), lambda x: torch.softmax(x, -1))
    for text, start, dtype in (("f32 to i32", "float32", torch.int32), ("i32 to f32", "int32", torch.float32),
                               ("u8 to f32", "uint8", torch.float32), ("f32 to f64", "float32", torch.float64),
                               ("f32 to f16", "float32", torch.float16)):
        rows["cast %s 1e6" % text] = lambda start=start, dtype=dtype: of(
            floats(10 ** 6) if start == "float32" else tensor(whole(10 ** 6, 200, start)), lambda x: x.to(dtype))
    rows["concat 2 x {500, 1000}, first"] = lambda: of(floats(500, 1000), lambda x: torch.cat([x, x], 0))
    rows["concat 2 x {1000, 500}, last"] = lambda: of(floats(1000, 500), lambda x: torch.cat([x, x], 1))
    rows["slice of {1000, 1000}, copied"] = lambda: of(floats(1000, 1000), lambda x: x[100:900, 100:900].contiguous())
    rows["transpose {1000, 1000}, copied"] = lambda: of(floats(1000, 1000), lambda x: x.T.contiguous())
    rows["take 1e4 rows of {1e5, 64}"] = lambda: (lambda t, at: lambda: t[at])(
        floats(10 ** 5, 64), tensor(whole(10 ** 4, 10 ** 5, "int64")))
    rows["one_hot 1e4 of 100"] = lambda: of(tensor(whole(10 ** 4, 100, "int64")), lambda x: torch.nn.functional.one_hot(x, 100).float())
    rows["pad {32, 64, 64, 16} by 1"] = lambda: of(floats(32, 64, 64, 16), lambda x: torch.nn.functional.pad(x, (0, 0, 1, 1, 1, 1)))
    rows["top_k 5 of {1000, 1000}"] = lambda: of(floats(1000, 1000), lambda x: torch.topk(x, 5))
    rows["sort {1000, 1000}, last"] = lambda: of(floats(1000, 1000), lambda x: torch.sort(x, dim=-1, stable=True))
    rows["argsort 1e5"] = lambda: of(floats(10 ** 5), lambda x: torch.argsort(x, stable=True))
    rows["random uniform 1e6"] = lambda: lambda: torch.rand(10 ** 6)
    rows["random normal 1e6"] = lambda: lambda: torch.randn(10 ** 6)
    rows["random integers 1e6"] = lambda: lambda: torch.randint(0, 1000, (10 ** 6,), dtype=torch.int32)
    rows["product f32 512"] = lambda: of(floats(512, 512), lambda x: x @ x)
    rows["product f32 64"] = lambda: of(floats(64, 64), lambda x: x @ x)
    rows["product f64 512"] = lambda: of(floats(512, 512).double(), lambda x: x @ x)
    rows["product 64 x f32 64"] = lambda: of(floats(64, 64, 64), lambda x: x @ x)
    rows["item 1000 times"] = lambda: each(floats(1000))


(torch_rows if peer == "pytorch" else numpy_rows)()
function = name = None


def run(count):
    start = now()
    for _ in range(count):
        function()
    return now() - start


print("ready", flush=True)
for line in sys.stdin:
    row, seconds = line.rstrip("\n").split("\t")
    if row != name:
        function, name = None, row
        function = rows[row]() if row in rows else None
        if function:
            run(3)
    if function:
        count = 1
        took = run(count)
        while took < 0.1 * float(seconds):
            count *= 2
            took = run(count)
        count = max(1, int(count * float(seconds) / took + 1))
        print("window %d %.9f" % (count, run(count)), flush=True)
    else:
        print("window 0 0", flush=True)
