"""torch.compile: Triton kernels that Inductor generates, forwards and backwards"""

import os
import tempfile

# Nothing is taken from an earlier run.
os.environ['TORCHINDUCTOR_FORCE_DISABLE_CACHES'] = '1'
os.environ['TORCHINDUCTOR_CACHE_DIR'] = tempfile.mkdtemp()

from helpers.report import deterministic_torch, digest, report

torch = deterministic_torch()
x = torch.randn(256, 512, device='cuda', requires_grad=True)
weights = torch.randn(512, 512, device='cuda', requires_grad=True)


def layer(x, weights):
    return torch.softmax(torch.nn.functional.gelu(x @ weights), dim=-1).square().sum()


plain = layer(x, weights)
compiled = torch.compile(layer)(x, weights)
compiled.backward()
torch.testing.assert_close(plain, compiled, rtol=1e-4, atol=1e-4)
report(loss=digest(compiled), of_x=digest(x.grad), of_weights=digest(weights.grad))
