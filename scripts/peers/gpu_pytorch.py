"""gpu_pytorch.py NET SECONDS ROUNDS [WAY ...]: PyTorch's side of scripts/gpu-check's table: every way to be fast, of which the best counts.

Trains NET (flowers, mnist, resnet50) on cuda:0, channels last, data on the device, the accuracy counted there; float32 with TF32 allowed,
bfloat16 by autocast; gradients are set to None. Ways: eager; graph: the whole step, optimizer included, is one CUDA graph; compiled: the
model goes through torch.compile, with its own graphs ("reduce-overhead"); compiled-graph: the same without those, as one CUDA graph. Prints
a line "WAY DTYPE images RATE" for each round, the quick ways first; a way that fails says why and stops no other."""
import sys
import time
import traceback

import torch
from torch import nn

net, seconds, rounds = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.benchmark = True
device = torch.device("cuda:0")


class Rescaling(nn.Module):
    def forward(self, x):
        return x / 255


def flowers():
    model, channels = [Rescaling()], 3
    for filters in (16, 32, 64):
        model += [nn.Conv2d(channels, filters, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        channels = filters
    model += [nn.Flatten(), nn.Linear(22 * 22 * 64, 128), nn.ReLU(), nn.Linear(128, 5)]
    return nn.Sequential(*model), adam, (3, 180, 180), 5, 32, 90


def mnist():
    model = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(26 * 26 * 32, 128), nn.ReLU(), nn.Linear(128, 10))
    return model, lambda weights: torch.optim.SGD(weights, 0.001, fused=True), (1, 28, 28), 10, 64, 400


def adam(weights):
    return torch.optim.Adam(weights, fused=True, capturable=True)


def conv_norm(channels, filters, size, stride=1):
    return nn.Sequential(nn.Conv2d(channels, filters, size, stride, size // 2, bias=False), nn.BatchNorm2d(filters))


class Block(nn.Module):
    def __init__(self, channels, filters, stride):
        super().__init__()
        self.first, self.second = conv_norm(channels, filters, 1), conv_norm(filters, filters, 3, stride)
        self.third = conv_norm(filters, 4 * filters, 1)
        self.short_cut = nn.Identity() if channels == 4 * filters else conv_norm(channels, 4 * filters, 1, stride)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.short_cut(x) + self.third(self.relu(self.second(self.relu(self.first(x))))))


def resnet50():
    model, channels = [conv_norm(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)], 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            model.append(Block(channels, 64 << stage, 2 if stage > 0 and block == 0 else 1))
            channels = 256 << stage
    model += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000)]
    return nn.Sequential(*model), lambda weights: torch.optim.SGD(weights, 0.1, momentum=0.9, fused=True), (3, 224, 224), 1000, 256, 2


def measure(way, dtype):
    torch.manual_seed(1)
    model, optimizer, shape, classes, batch, batches = {"flowers": flowers, "mnist": mnist, "resnet50": resnet50}[net]()
    model = model.to(device, memory_format=torch.channels_last)
    optimizer = optimizer(model.parameters())
    if way.startswith("compiled"):
        model = torch.compile(model, mode="reduce-overhead" if way == "compiled" else None)
    x = torch.rand(batch * batches, *shape, device=device) * (255 if net == "flowers" else 1)
    x = x.contiguous(memory_format=torch.channels_last)
    y = torch.randint(0, classes, (batch * batches,), device=device)
    data = list(zip(x.split(batch), y.split(batch)))
    hits = torch.zeros((), dtype=torch.int64, device=device)

    def step(images, labels):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16, enabled=dtype == "bfloat16"):
            output = model(images)
            loss = nn.functional.cross_entropy(output.float(), labels)
        loss.backward()
        optimizer.step()
        hits.add_((output.detach().argmax(1) == labels).sum())

    one = as_graph(step, *data[0]) if way.endswith("graph") else step

    def run(epochs):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(epochs):
            for a, b in data:
                one(a, b)
            hits.item()
        return time.perf_counter() - start

    for _ in range(3):                              # compiles, chooses algorithms, records
        run(1)
    epochs = max(1, round(seconds / run(1)))
    for _ in range(rounds):
        print("%s %s images %.0f" % (way, dtype, epochs * len(y) / run(epochs)), flush=True)


def as_graph(step, images, labels):
    images, labels = images.clone(), labels.clone()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(5):
            step(images, labels)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step(images, labels)

    def one(a, b):
        images.copy_(a, non_blocking=True)
        labels.copy_(b, non_blocking=True)
        graph.replay()
    return one


for way in sys.argv[4:] or ("graph", "eager", "compiled-graph", "compiled"):
    for dtype in ("bfloat16", "float32"):
        if way == "compiled" and dtype == "float32":
            continue                                # the other compiled way has it: compiling takes most of the time
        try:
            measure(way, dtype)
        except Exception:
            traceback.print_exc()
            print("%s %s failed" % (way, dtype), flush=True)
        torch.cuda.empty_cache()
