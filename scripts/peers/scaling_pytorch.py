"""scaling_pytorch.py KIND STEPS: PyTorch's side of scaling.py, which says what a job prints. KIND: one, or ddp: one of the processes of
DistributedDataParallel over Gloo, which finds RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in its environment, as torchrun sets them."""
import sys
import time

import torch
from torch import distributed, nn

kind, steps = sys.argv[1], int(sys.argv[2])
BATCH = 64
torch.set_num_threads(1)
torch.manual_seed(1)
rank = 0
if kind == "ddp":
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()

model = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(26 * 26 * 32, 128), nn.ReLU(), nn.Linear(128, 10))
model = model.to(memory_format=torch.channels_last)             # its fastest layout here
optimizer = torch.optim.SGD(model.parameters(), 0.001, fused=True)
replica = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True) if kind == "ddp" else model
x = torch.rand(100 * BATCH, 1, 28, 28).contiguous(memory_format=torch.channels_last)
y = torch.randint(0, 10, (100 * BATCH,))
batches = list(zip(x.split(BATCH), y.split(BATCH)))


def train(count):
    hits = torch.zeros((), dtype=torch.int64)
    for step in range(count):
        images, labels = batches[step % len(batches)]
        optimizer.zero_grad(set_to_none=True)
        output = replica(images)
        nn.functional.cross_entropy(output, labels).backward()
        optimizer.step()
        hits += (output.detach().argmax(1) == labels).sum()


train(1)
if rank == 0:
    print("first", flush=True)
train(20)
if kind == "ddp":
    distributed.barrier()
start = time.perf_counter()
train(steps)
if kind == "ddp":
    distributed.barrier()
if rank == 0:
    replicas = distributed.get_world_size() if kind == "ddp" else 1
    print("rate %d %.6f" % (replicas * steps * BATCH, time.perf_counter() - start), flush=True)
if kind == "ddp":
    distributed.destroy_process_group()
