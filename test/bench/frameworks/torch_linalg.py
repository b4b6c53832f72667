"""cuSOLVER: linear algebra through PyTorch"""

from helpers.report import deterministic_torch, digest, report

torch = deterministic_torch()
torch.backends.cuda.preferred_linalg_library('cusolver')
a = torch.randn(200, 200, device='cuda', dtype=torch.float64)
positive = a @ a.T + 200 * torch.eye(200, device='cuda', dtype=torch.float64)
batch = positive[:32, :32].expand(10, 32, 32).contiguous()
right = torch.randn(200, 3, device='cuda', dtype=torch.float64)
factor = torch.linalg.cholesky(positive)
torch.testing.assert_close(factor @ factor.T, positive)
solution = torch.linalg.solve(positive, right)
torch.testing.assert_close(positive @ solution, right)
q, r = torch.linalg.qr(a)
torch.testing.assert_close(q @ r, a)
singular = torch.linalg.svdvals(a)
values, vectors = torch.linalg.eigh(positive)
torch.testing.assert_close(positive @ vectors, vectors * values)
report(
    cholesky=digest(factor),
    batched_cholesky=digest(torch.linalg.cholesky(batch)),
    solution=digest(solution),
    q=digest(q),
    singular=digest(singular),
    eigenvalues=digest(values),
    inverse=digest(torch.linalg.inv(positive)),
)
