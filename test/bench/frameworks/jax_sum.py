"""JAX: a sum, and the column sums of a matrix product, each compiled"""
# run: timed

import os

os.environ['XLA_PYTHON_CLIENT_PREALLOCATE'] = 'false'
os.environ['XLA_FLAGS'] = '--xla_gpu_deterministic_ops=true --xla_gpu_autotune_level=0'

import jax
import jax.numpy as jnp

from helpers.report import digest, report, timed

assert jax.devices()[0].platform == 'gpu', jax.devices()
x = jnp.arange(1_000_000, dtype=jnp.float32) % 100
a = jax.random.normal(jax.random.PRNGKey(7), (1024, 1024))
sum_up = jax.jit(lambda x: x.sum())
multiply = jax.jit(lambda a: (a @ a).sum(axis=0))


def work():
    return jax.block_until_ready((sum_up(x), multiply(a)))


work()
(total, columns), times = timed(work, repeat=10)
report(times, total=float(total), columns=digest(columns))
