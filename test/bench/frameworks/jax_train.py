"""JAX: training of a convolutional network in a scan, gradients, random numbers"""

import os

os.environ['XLA_PYTHON_CLIENT_PREALLOCATE'] = 'false'
os.environ['XLA_FLAGS'] = '--xla_gpu_deterministic_ops=true --xla_gpu_autotune_level=0'

import jax
import jax.numpy as jnp

from helpers.report import digest, report

assert jax.devices()[0].platform == 'gpu', jax.devices()
keys = jax.random.split(jax.random.PRNGKey(7), 4)
parameters = {
    'kernel': jax.random.normal(keys[0], (16, 3, 3, 3)) * 0.1,
    'weights': jax.random.normal(keys[1], (16, 10)) * 0.1,
}
images = jax.random.normal(keys[2], (64, 3, 32, 32))
labels = jax.random.randint(keys[3], (64,), 0, 10)


def loss_of(parameters):
    features = jax.lax.conv(images, parameters['kernel'], (1, 1), 'SAME')
    logits = jax.nn.relu(features).mean(axis=(2, 3)) @ parameters['weights']
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1).mean()


def step(parameters, _):
    loss, gradients = jax.value_and_grad(loss_of)(parameters)
    return jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradients), loss


@jax.jit
def train(parameters):
    return jax.lax.scan(step, parameters, None, length=100)


parameters, losses = jax.block_until_ready(train(parameters))
assert losses[-1] < losses[0]
report(losses=digest(losses), **{name: digest(value) for name, value in parameters.items()})
