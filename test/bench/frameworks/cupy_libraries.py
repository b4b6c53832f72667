"""CuPy on cuBLAS, cuFFT, cuSOLVER, cuSPARSE and cuRAND"""

import cupy
import cupyx.scipy.sparse as sparse

from helpers.report import digest, report

a = cupy.sin(cupy.arange(90_000, dtype=cupy.float64)).reshape(300, 300)
positive = a @ a.T + 300 * cupy.eye(300)
lower = cupy.linalg.cholesky(positive)
cupy.testing.assert_allclose(lower @ lower.T, positive, rtol=1e-9)
spectrum = cupy.fft.fft2(a)
cupy.testing.assert_allclose(cupy.fft.ifft2(spectrum).real, a, atol=1e-9)
thin = cupy.where(a > 0.9, a, 0)
product = sparse.csr_matrix(thin) @ a
cupy.testing.assert_allclose(product, thin @ a, rtol=1e-9, atol=1e-9)
generator = cupy.random.RandomState(7)
report(
    product=digest((a.astype(cupy.float32) @ a.astype(cupy.float32)).get()),
    cholesky=digest(lower.get()),
    solution=digest(cupy.linalg.solve(positive, a[0]).get()),
    spectrum=digest(spectrum.get()),
    sparse=digest(product.get()),
    normal=digest(generator.normal(size=10_001).get()),
    uniform=digest(generator.random_sample(10_000).get()),
    sorted=digest(cupy.sort(a.ravel()).get()),
)
