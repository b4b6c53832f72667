"""cuDNN through PyTorch: convolutions, LSTM, batch norm, attention"""

from helpers.report import deterministic_torch, digest, report

torch = deterministic_torch()
from torch.nn.attention import SDPBackend, sdpa_kernel

assert torch.backends.cudnn.is_available()
x = torch.randn(8, 16, 32, 32, device='cuda', requires_grad=True)
layers = torch.nn.Sequential(
    torch.nn.Conv2d(16, 32, 3, padding=1),
    torch.nn.BatchNorm2d(32),
    torch.nn.ConvTranspose2d(32, 16, 4, stride=2),
).cuda()
image = layers(x)
image.square().mean().backward()
volume = torch.nn.Conv3d(2, 4, 3).cuda()(torch.randn(2, 2, 16, 16, 16, device='cuda'))
lstm = torch.nn.LSTM(64, 128, num_layers=2).cuda()
sequence, _ = lstm(torch.randn(20, 4, 64, device='cuda'))
q, k, v = (torch.randn(2, 8, 256, 64, device='cuda', dtype=torch.float16) for _ in range(3))
torch.use_deterministic_algorithms(False)  # cuDNN's attention has none
attention = {}
for backend in (SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.MATH):
    with sdpa_kernel(backend), torch.no_grad():
        result = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    attention[backend.name] = digest(result)
report(
    image=digest(image),
    gradient=digest(x.grad),
    volume=digest(volume),
    sequence=digest(sequence),
    **attention,
)
