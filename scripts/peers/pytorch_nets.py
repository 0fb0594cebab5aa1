"""pytorch_nets.py: the nets of compare.py in PyTorch. A function returns a model, a function of its parameters that makes the optimizer,
the shape of an image (or row), the number of classes, or None where an image is to be reproduced, and the batch size for training."""
import torch
from torch import nn


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


def norm_conv(channels, filters, size):
    return nn.Sequential(nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01), nn.ReLU(inplace=True),
                         nn.Conv2d(channels, filters, size, padding=size // 2, bias=False))


class DenseBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(norm_conv(channels, 128, 1), norm_conv(128, 32, 3))

    def forward(self, x):
        return torch.cat([x, self.body(x)], 1)


def densenet():
    model, channels = [conv_norm(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)], 64
    for stage, blocks in enumerate((6, 12, 24, 16)):
        if stage > 0:
            model += [norm_conv(channels, channels // 2, 1), nn.AvgPool2d(2)]
            channels //= 2
        for _ in range(blocks):
            model.append(DenseBlock(channels))
            channels += 32
    model += [nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
              nn.Linear(channels, 1000)]
    return nn.Sequential(*model), lambda weights: torch.optim.SGD(weights, 0.1, momentum=0.9, fused=True), (3, 96, 96), 1000, 16


class LayerNormOfChannels(nn.LayerNorm):
    """Pictures that lie with the channels last are normalized where they lie."""
    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNeXtBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix, self.norm = nn.Conv2d(width, width, 7, padding=3, groups=width), nn.LayerNorm(width, 1e-6)
        self.inside = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        return x + self.inside(self.norm(self.mix(x).permute(0, 2, 3, 1))).permute(0, 3, 1, 2)


def convnext():
    model = [nn.Conv2d(3, 96, 4, 4), LayerNormOfChannels(96, 1e-6)] + [ConvNeXtBlock(96) for _ in range(3)]
    model += [LayerNormOfChannels(96, 1e-6), nn.Conv2d(96, 192, 2, 2)] + [ConvNeXtBlock(192) for _ in range(3)]
    model += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(192, 1e-6), nn.Linear(192, 10)]
    return nn.Sequential(*model), adam, (3, 64, 64), 10, 32


def autoencoder():
    class Autoencoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2),
                nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2),
                nn.ConvTranspose2d(32, 32, 3, 2, 1, 1), nn.ReLU(inplace=True),
                nn.ConvTranspose2d(32, 32, 3, 2, 1, 1), nn.ReLU(inplace=True),
                nn.Conv2d(32, 3, 3, padding=1), nn.Sigmoid())

        def forward(self, x):
            return 255 * self.body(x / 255)

    return Autoencoder(), adam, (3, 64, 64), None, 32


NETS = {function.__name__: function for function in (
    flowers, mnist, resnet20, mobilenet, resnet50, vgg11, unet, mlp, densenet, convnext, autoencoder, embedding, lstm, gru, transformer)}
