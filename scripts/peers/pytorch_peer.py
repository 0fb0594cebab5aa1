"""pytorch_peer.py NET MODE SECONDS THREADS: PyTorch's side of compare.py, which describes the conversation."""
import sys

import torch
from torch import nn

import pytorch_nets as nets
from conversation import BATCHES, PIXELS, TEXTS, answer, one_by_one

net, mode, seconds, threads = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
torch.set_num_threads(threads)
torch.manual_seed(1)
model, optimizer, shape, classes, batch = nets.NETS[net]()
rows = batch * BATCHES.get(net, 20)
x = torch.rand(rows, *shape) * (255 if net in PIXELS else 1)
if len(shape) == 3:                                             # their fastest layout here
    model, x = model.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
if net in TEXTS:
    x = torch.randint(0, 20000, (rows, *shape))
times = []

if mode.startswith("train"):
    optimizer = optimizer(model.parameters())
    y = torch.randint(0, classes, (rows,)) if classes else x
    loss = nn.functional.cross_entropy if classes else nn.functional.mse_loss
    batches = list(zip(x.split(batch), y.split(batch)))

    def work(passes):
        """The loop of PyTorch's tutorials with the accuracy counted, as the other peers do."""
        for _ in range(passes):
            hits = torch.zeros((), dtype=torch.int64)
            for images, labels in batches:
                optimizer.zero_grad(set_to_none=True)
                with torch.autocast("cpu", torch.bfloat16, enabled=mode == "train-bfloat16"):
                    output = model(images)
                    error = loss(output, labels)
                error.backward()
                optimizer.step()
                if classes:
                    hits += (output.detach().argmax(1) == labels).sum()
else:
    model.eval()
    torch.set_grad_enabled(False)
    if mode == "predict1":
        work = one_by_one(torch.inference_mode()(model), x[:64].split(1), rows, times)
    else:
        batches = x.split(32)

        def work(passes):
            with torch.inference_mode():
                for _ in range(passes):
                    torch.cat([model(images) for images in batches])

answer(work, rows, seconds, times)
