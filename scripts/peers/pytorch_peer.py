"""pytorch_peer.py NET MODE SECONDS THREADS: PyTorch's side of compare.py, which describes the conversation."""
import math
import sys
import time

import torch
from torch import nn

net, mode, seconds, threads = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
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
    return model, adam, (3, 180, 180), 5, 32


def mnist():
    model = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(26 * 26 * 32, 128), nn.ReLU(), nn.Linear(128, 10))
    return model, lambda weights: torch.optim.SGD(weights, 0.001, fused=True), (1, 28, 28), 10, 64


def adam(weights):
    return torch.optim.Adam(weights, fused=True)


def conv_norm(channels, filters, size, stride=1, groups=1):
    return nn.Sequential(nn.Conv2d(channels, filters, size, stride, size // 2, groups=groups, bias=False),
                         nn.BatchNorm2d(filters, eps=1e-3, momentum=0.01))


class Block(nn.Module):
    """Two convolutions beside a short cut, which is a 1 x 1 convolution where the size changes."""
    def __init__(self, channels, filters, stride):
        super().__init__()
        self.first, self.second = conv_norm(channels, filters, 3, stride), conv_norm(filters, filters, 3)
        self.short_cut = conv_norm(channels, filters, 1, stride) if stride > 1 else nn.Identity()
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.short_cut(x) + self.second(self.relu(self.first(x))))


def resnet20():
    model, channels = [conv_norm(3, 16, 3), nn.ReLU(inplace=True)], 16
    for stage, filters in enumerate((16, 32, 64)):
        for block in range(3):
            model.append(Block(channels, filters, 2 if stage > 0 and block == 0 else 1))
            channels = filters
    model += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)]
    return nn.Sequential(*model), lambda weights: torch.optim.SGD(weights, 0.1, momentum=0.9, fused=True), (3, 32, 32), 10, 64


def mobilenet():
    model, channels = [conv_norm(3, 8, 3, 2), nn.ReLU(inplace=True)], 8
    for filters, stride in [(16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2)] + 5 * [(128, 1)] + [(256, 2), (256, 1)]:
        model += [conv_norm(channels, channels, 3, stride, channels), nn.ReLU(inplace=True)]
        model += [conv_norm(channels, filters, 1), nn.ReLU(inplace=True)]
        channels = filters
    model += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10)]
    return nn.Sequential(*model), adam, (3, 96, 96), 10, 32


class Bottleneck(nn.Module):
    def __init__(self, channels, filters, stride, first):
        super().__init__()
        self.body = nn.Sequential(conv_norm(channels, filters, 1), nn.ReLU(inplace=True), conv_norm(filters, filters, 3, stride),
                                  nn.ReLU(inplace=True), conv_norm(filters, 4 * filters, 1))
        self.short_cut = conv_norm(channels, 4 * filters, 1, stride) if first else nn.Identity()
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.short_cut(x) + self.body(x))


def resnet50():
    model, channels = [conv_norm(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)], 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            model.append(Bottleneck(channels, 64 << stage, 2 if stage > 0 and block == 0 else 1, block == 0))
            channels = 256 << stage
    model += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000)]
    return nn.Sequential(*model), lambda weights: torch.optim.SGD(weights, 0.1, momentum=0.9, fused=True), (3, 224, 224), 1000, 8


def vgg11():
    model, channels = [], 3
    for stage in ((64,), (128,), (256, 256), (512, 512), (512, 512)):
        for filters in stage:
            model += [nn.Conv2d(channels, filters, 3, padding=1), nn.ReLU(inplace=True)]
            channels = filters
        model.append(nn.MaxPool2d(2))
    model += [nn.Flatten(), nn.Linear(3 * 3 * 512, 1000)]
    return nn.Sequential(*model), lambda weights: torch.optim.SGD(weights, 0.001, fused=True), (3, 112, 112), 1000, 16


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        def twice(channels, filters):
            return nn.Sequential(nn.Conv2d(channels, filters, 3, padding=1), nn.ReLU(inplace=True),
                                 nn.Conv2d(filters, filters, 3, padding=1), nn.ReLU(inplace=True))
        self.down = nn.ModuleList([twice(3, 16), twice(16, 32)])
        self.middle = twice(32, 64)
        self.up = nn.ModuleList([twice(32 + 64, 32), twice(16 + 32, 16)])
        self.last, self.head = nn.Conv2d(16, 8, 1), nn.Linear(8, 4)

    def forward(self, x):
        x, skipped = x / 255, []
        for part in self.down:
            skipped.append(part(x))
            x = nn.functional.max_pool2d(skipped[-1], 2)
        x = self.middle(x)
        for part in self.up:
            x = part(torch.cat([skipped.pop(), nn.functional.interpolate(x, scale_factor=2)], 1))
        return self.head(self.last(x).mean((2, 3)))


def unet():
    return UNet(), adam, (3, 48, 48), 4, 8


def mlp():
    model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Dropout(0.2), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10))
    return model, adam, (784,), 10, 128


class Words(nn.Module):
    """The embedded words of a text, layers, two classes."""
    def __init__(self, *stack, positions=0):
        super().__init__()
        self.table, self.stack = nn.Embedding(20000, 128), nn.Sequential(*stack)
        self.positions = nn.Parameter(0.02 * torch.randn(positions, 128)) if positions else None

    def forward(self, x):
        x = self.table(x)
        return self.stack(x if self.positions is None else x + self.positions)


class Mean(nn.Module):
    def forward(self, x):
        return x.mean(1)


class LastStep(nn.Module):
    """A recurrent layer's last output."""
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)[0][:, -1]


class TransformerBlock(nn.Module):
    """Faster than nn.TransformerEncoderLayer in training: one product for queries, keys and values, scaled_dot_product_attention."""
    def __init__(self, width=128, heads=4, inside=512):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.inside = nn.Sequential(nn.Linear(width, inside), nn.ReLU(), nn.Linear(inside, width))
        self.norms = nn.ModuleList([nn.LayerNorm(width, 1e-6), nn.LayerNorm(width, 1e-6)])
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        attended = self.out(nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        x = self.norms[0](x + self.dropout(attended))
        return self.norms[1](x + self.dropout(self.inside(x)))


def embedding():
    return Words(Mean(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 2)), adam, (200,), 2, 64


def lstm():
    return Words(LastStep(nn.LSTM(128, 128, batch_first=True)), nn.Linear(128, 2)), adam, (150,), 2, 32


def gru():
    return Words(LastStep(nn.GRU(128, 128, batch_first=True)), nn.Linear(128, 2)), adam, (150,), 2, 32


def transformer():
    stack = TransformerBlock(), TransformerBlock(), Mean(), nn.Linear(128, 2)
    return Words(*stack, positions=128), adam, (128,), 2, 32


texts = {"embedding": embedding, "lstm": lstm, "gru": gru, "transformer": transformer}
model, optimizer, shape, classes, batch = {"flowers": flowers, "mnist": mnist, "resnet20": resnet20, "mobilenet": mobilenet,
                                           "resnet50": resnet50, "vgg11": vgg11, "unet": unet, "mlp": mlp, **texts}[net]()
rows = batch * {"mnist": 200, "mlp": 200, "resnet50": 2, "vgg11": 2}.get(net, 20)
x = torch.rand(rows, *shape) * {"flowers": 255, "unet": 255}.get(net, 1)
if len(shape) == 3:                                             # their fastest layout here
    model, x = model.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
if net in texts:
    x = torch.randint(0, 20000, (rows, *shape))
y = torch.randint(0, classes, (rows,))
times = []

if mode == "train":
    optimizer = optimizer(model.parameters())
    batches = list(zip(x.split(batch), y.split(batch)))

    def work(passes):
        """The loop of PyTorch's tutorials with the accuracy counted, as the other peers do."""
        for _ in range(passes):
            hits = torch.zeros((), dtype=torch.int64)
            for images, labels in batches:
                optimizer.zero_grad(set_to_none=True)
                output = model(images)
                nn.functional.cross_entropy(output, labels).backward()
                optimizer.step()
                hits += (output.detach().argmax(1) == labels).sum()
elif mode == "predict1":
    model.eval()
    ones = x[:64].split(1)

    def work(passes):
        times.clear()
        with torch.inference_mode():
            for i in range(passes * rows):
                start = time.perf_counter()
                model(ones[i % len(ones)])
                times.append(time.perf_counter() - start)
else:
    model.eval()
    batches = x.split(32)

    def work(passes):
        with torch.inference_mode():
            for _ in range(passes):
                torch.cat([model(images) for images in batches])


def run(passes):
    start = time.perf_counter()
    work(passes)
    return time.perf_counter() - start


run(1)
passes = max(1, round(seconds / run(1)))
print("ready", flush=True)
for _ in sys.stdin:
    seconds = run(passes)
    late = " %.1f" % (1e6 * sorted(times)[math.ceil(0.99 * len(times)) - 1]) if times else ""
    print("window %d %.6f%s" % (passes * rows, seconds, late), flush=True)
