"""cuBLAS and cuBLASLt through PyTorch: half types, batches, epilogues, fp8"""

from helpers.report import deterministic_torch, digest, report

torch = deterministic_torch()
a = torch.randn(512, 768, device='cuda')
b = torch.randn(768, 1024, device='cuda')
bias = torch.randn(1024, device='cuda')
batch = torch.randn(8, 128, 256, device='cuda')
results = {
    'half': digest(a.half() @ b.half()),
    'bfloat16': digest(a.bfloat16() @ b.bfloat16()),
    'double': digest(a.double() @ b.double()),
    'batch': digest(torch.bmm(batch, batch.transpose(1, 2))),
    'epilogue': digest(torch._addmm_activation(bias.half(), a.half(), b.half(), use_gelu=True)),
    'linear': digest(torch.nn.functional.linear(a.half(), b.T.half().contiguous(), bias.half())),
}
torch.backends.cuda.matmul.allow_tf32 = True
results['tf32'] = digest(a @ b)
torch.backends.cuda.preferred_blas_library('cublaslt')
results['lt'] = digest(a.half() @ b.half())
one = torch.ones((), device='cuda')
eighth = torch.float8_e4m3fn
results['fp8'] = digest(
    torch._scaled_mm(
        a.to(eighth), b.T.contiguous().to(eighth).T, one, one, out_dtype=torch.bfloat16
    )
)
report(**results)
