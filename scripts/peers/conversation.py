"""conversation.py: a peer's side of the conversation that compare.py describes, and what all peers know of its nets."""
import math
import sys
import time

TEXTS = ("embedding", "lstm", "gru", "transformer")
PIXELS = ("flowers", "unet", "autoencoder")             # of 0 to 255, which the nets rescale
BATCHES = {"mnist": 200, "mlp": 200, "resnet50": 2, "vgg11": 2, "densenet": 4}          # of the data, where not 20


def answer(work, rows, seconds, times=()):
    """`work(passes)` works on `rows` images in each pass and leaves in `times`, if it predicts one at a time, what each took. Windows
    take about `seconds`."""
    def run(passes):
        start = time.perf_counter()
        work(passes)
        return time.perf_counter() - start

    run(1)                                           # traces, plans, fills caches
    passes = max(1, round(seconds / run(1)))
    print("ready", flush=True)
    for _ in sys.stdin:
        took = run(passes)
        late = " %.1f" % (1e6 * sorted(times)[math.ceil(0.99 * len(times)) - 1]) if times else ""
        print("window %d %.6f%s" % (passes * rows, took, late), flush=True)


def one_by_one(predict, ones, rows, times):
    """Work for `answer`: `predict` is called with one image after the other, `rows` times a pass."""
    def work(passes):
        times.clear()
        for i in range(passes * rows):
            start = time.perf_counter()
            predict(ones[i % len(ones)])
            times.append(time.perf_counter() - start)
    return work
