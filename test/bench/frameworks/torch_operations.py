"""PyTorch: a float matrix product and a convolution"""
# run: timed

from helpers.report import deterministic_torch, digest, report, timed

torch = deterministic_torch()
a = torch.randn(4096, 4096).cuda()
b = torch.randn(4096, 4096).cuda()
images = torch.randn(32, 64, 112, 112).cuda()
weights = torch.randn(128, 64, 3, 3).cuda()


def work():
    product = a @ b
    convolved = torch.nn.functional.conv2d(images, weights, padding=1)
    torch.cuda.synchronize()
    return product, convolved


work()
(product, convolved), times = timed(work, repeat=20)
report(times, product=digest(product), convolution=digest(convolved))
