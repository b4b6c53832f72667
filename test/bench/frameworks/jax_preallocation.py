"""JAX: preallocation takes three quarters of the slice"""
# run: alone memory=8GiB

import os

os.environ['XLA_FLAGS'] = '--xla_gpu_autotune_level=0'  # autotuning copies its operands

from cuda.bindings import driver

driver.cuInit(0)
_, device = driver.cuDeviceGet(0)
_, total = driver.cuDeviceTotalMem(device)

import jax
import jax.numpy as jnp

from helpers.report import digest, report

x = jnp.arange(1 << 20, dtype=jnp.float32)
limit = jax.devices()[0].memory_stats()['bytes_limit']
large = jnp.zeros((limit - (1 << 30)) // 4, dtype=jnp.float32)  # of the memory that JAX holds
refused = False
try:
    jnp.zeros(limit // 2, dtype=jnp.float32).block_until_ready()
except (RuntimeError, ValueError) as error:
    refused = 'RESOURCE_EXHAUSTED' in str(error)
report(
    three_quarters=0.7 <= limit / total <= 0.76,
    refused=refused,
    large=float(large.sum()),
    squares=digest(x * x),
)
