"""JAX: a sum and a matrix product, compiled."""

import os

os.environ['XLA_PYTHON_CLIENT_PREALLOCATE'] = 'false'
os.environ['XLA_FLAGS'] = '--xla_gpu_deterministic_ops=true --xla_gpu_autotune_level=0'

import jax
import jax.numpy as jnp

from report import digest, report, timed

assert jax.devices()[0].platform == 'gpu', jax.devices()
x = jnp.arange(1_000_000, dtype=jnp.float32) % 100
a = jax.random.normal(jax.random.PRNGKey(7), (1024, 1024))
work = jax.jit(lambda x, a: (x.sum(), jnp.tanh(a @ a).sum(axis=0)))
jax.block_until_ready(work(x, a))
(total, columns), seconds = timed(lambda: jax.block_until_ready(work(x, a)), repeat=10)
report(seconds, total=float(total), columns=digest(columns))
