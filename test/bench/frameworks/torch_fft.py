"""cuFFT through PyTorch: one to three dimensions, complex and real"""

from helpers.report import deterministic_torch, digest, report

torch = deterministic_torch()
line = torch.randn(64, 4096, device='cuda')
plane = torch.randn(16, 300, 500, device='cuda', dtype=torch.complex64)
space = torch.randn(64, 64, 64, device='cuda', dtype=torch.float64)
there = torch.fft.rfft(line)
back = torch.fft.irfft(there, n=4096)
torch.testing.assert_close(back, line, rtol=1e-4, atol=1e-4)
report(
    line=digest(torch.view_as_real(there)),
    back=digest(back),
    plane=digest(torch.view_as_real(torch.fft.fft2(plane))),
    space=digest(torch.view_as_real(torch.fft.rfftn(space))),
    odd=digest(torch.view_as_real(torch.fft.fft(line[:, :997]))),
)
