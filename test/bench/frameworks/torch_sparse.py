"""cuSPARSE through PyTorch: products of CSR matrices"""

import torch

from helpers.report import digest, report

generator = torch.Generator().manual_seed(7)
dense = torch.randn(1000, 800, generator=generator)
dense[torch.rand(1000, 800, generator=generator) < 0.95] = 0
matrix = dense.to_sparse_csr().cuda()
other = torch.randn(800, 64, generator=generator).cuda()
vector = torch.randn(800, generator=generator).cuda()
product = matrix @ other
torch.testing.assert_close(product.cpu(), dense @ other.cpu(), rtol=1e-4, atol=1e-4)
square = matrix @ dense.T.to_sparse_csr().cuda()
torch.testing.assert_close(square.to_dense().cpu(), dense @ dense.T, rtol=1e-4, atol=1e-4)
report(
    matrix=digest(product),
    vector=digest(matrix @ vector),
    square=digest(square.to_dense()),
    entries=square.values().numel(),
)
