"""CuPy: a sum, an elementwise expression and a custom kernel"""
# run: timed

import cupy

from helpers.report import digest, report, timed

x = cupy.arange(10_000_000, dtype=cupy.float64) % 1000
cube = cupy.ElementwiseKernel('float64 x', 'float64 y', 'y = x * x * x', 'cube')


def work():
    results = x.sum(), (x * 2 + 1).sum(), cube(x)[::1000]
    cupy.cuda.Device().synchronize()
    return results


work()
(total, expression, cubes), times = timed(work, repeat=10)
report(times, total=float(total), expression=float(expression), cubes=digest(cubes.get()))
