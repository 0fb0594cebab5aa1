"""pytorch_train.py NET SECONDS THREADS: PyTorch's side of compare.py, which describes the conversation."""
import sys
import time

import torch
from torch import nn

net, seconds, threads = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(threads)
torch.manual_seed(1)


class Rescaling(nn.Module):
    def forward(self, x):
        return x / 255


def flowers():
    model = nn.Sequential(
        Rescaling(), nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(22 * 22 * 64, 128), nn.ReLU(), nn.Linear(128, 5))
    model = model.to(memory_format=torch.channels_last)              # its fastest layout here
    xs = [(torch.rand(32, 3, 180, 180) * 255).contiguous(memory_format=torch.channels_last) for _ in range(20)]
    return model, xs, [torch.randint(0, 5, (32,)) for _ in xs], torch.optim.Adam(model.parameters(), fused=True)


def mnist():
    model = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(26 * 26 * 32, 128), nn.ReLU(), nn.Linear(128, 10))
    xs = [torch.rand(64, 1, 28, 28) for _ in range(200)]
    return model, xs, [torch.randint(0, 10, (64,)) for _ in xs], torch.optim.SGD(model.parameters(), 0.001, fused=True)


model, xs, ys, optimizer = {"flowers": flowers, "mnist": mnist}[net]()


def train(epochs):
    """The loop of PyTorch's tutorials with the accuracy counted, as the other peers do."""
    start = time.perf_counter()
    for _ in range(epochs):
        hits = torch.zeros((), dtype=torch.int64)
        for x, y in zip(xs, ys):
            optimizer.zero_grad(set_to_none=True)
            output = model(x)
            nn.functional.cross_entropy(output, y).backward()
            optimizer.step()
            hits += (output.detach().argmax(1) == y).sum()
    return time.perf_counter() - start


train(1)
epochs = max(1, round(seconds / train(1)))
print("ready", flush=True)
for _ in sys.stdin:
    took = train(epochs)
    print("window %d %.6f" % (epochs * sum(len(x) for x in xs), took), flush=True)
