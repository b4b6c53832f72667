"""Trains a small network with PyTorch on the GPU. Prints what it sees as JSON."""

import json
import sys

import torch

properties = torch.cuda.get_device_properties(0)
free, total = torch.cuda.mem_get_info(0)
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 1)
).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
inputs = torch.randn(4096, 64, device="cuda")
wanted = torch.sin(inputs.sum(dim=1, keepdim=True))
losses = []
for _ in range(300):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(inputs), wanted)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

try:
    torch.empty(total + (1 << 20), dtype=torch.uint8, device="cuda")
    beyond = 0
except torch.cuda.OutOfMemoryError:
    beyond = 2

json.dump(
    {
        "devices": torch.cuda.device_count(),
        "name": properties.name,
        "total": total,
        "deviceTotal": properties.total_memory,
        "first": losses[0],
        "last": losses[-1],
        "beyond": beyond,
    },
    sys.stdout,
)
