"""PyTorch: start of Python, import and first kernel"""
# run: timed runs=5

import torch

total = torch.ones(1000, device='cuda').sum()
torch.cuda.synchronize()

from helpers.report import age, report

seconds = age()
report([seconds], total=total.item())
