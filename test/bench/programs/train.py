"""Trains ResNet-50 for a given time from each START: `train.py train START[,START...] SECONDS`.

Prints the steps per second of each run, their median, and a digest of the losses of the first
steps, which do not depend on time.
"""

import json
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / 'frameworks'))
from report import deterministic_torch, digest

torch = deterministic_torch()
import torchvision

FIRST_STEPS = 10
STEPS_BETWEEN_LOOKS = 10  # reading the loss synchronizes with the GPU
starts, duration = [float(start) for start in sys.argv[2].split(',')], float(sys.argv[3])
model = torchvision.models.resnet50(weights=None).cuda().train()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
loss_of = torch.nn.CrossEntropyLoss()
images = torch.randn(32, 3, 224, 224).cuda()
labels = torch.randint(0, 1000, (32,)).cuda()


def step():
    optimizer.zero_grad(set_to_none=True)
    loss = loss_of(model(images), labels)
    loss.backward()
    optimizer.step()
    return loss.detach()


def rate_from(start):
    time.sleep(max(0, start - time.time()))
    begin, steps = time.perf_counter(), 0
    while time.perf_counter() - begin < duration:
        for _ in range(STEPS_BETWEEN_LOOKS):
            loss = step()
        loss.item()
        steps += STEPS_BETWEEN_LOOKS
    return steps / (time.perf_counter() - begin)


losses = [step() for _ in range(FIRST_STEPS)]
print(json.dumps({'name': 'losses', 'value': digest(torch.stack(losses).cpu().numpy())}))
torch.cuda.synchronize()
rates = [rate_from(start) for start in starts]
print(json.dumps({'name': 'rate', 'value': statistics.median(rates), 'unit': '1/s'}))
print(json.dumps({'name': 'rates', 'value': rates, 'unit': '1/s'}))
