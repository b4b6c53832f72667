// Functions whose results are approximate, rounded to fewer digits than they promise.
// conformance:
// conformance: build=fast flags=--use_fast_math
#include "show.h"

constexpr int kFloats = 16, kDoubles = 14;

__global__ void floats(float* o) {
  const float x = 0.25f + threadIdx.x * 0.75f;
  o += threadIdx.x * kFloats;
  o[0] = sinf(x), o[1] = cosf(x), o[2] = tanf(x * 0.2f), o[3] = expf(x), o[4] = logf(x), o[5] = log2f(x), o[6] = exp2f(x),
  o[7] = powf(x, 1.7f);
  o[8] = sqrtf(x), o[9] = rsqrtf(x), o[10] = 1 / x, o[11] = atanf(x), o[12] = tanhf(x), o[13] = erff(x), o[14] = cbrtf(x),
  o[15] = atan2f(x, 2);
}

__global__ void doubles(double* o) {
  const double x = 0.25 + threadIdx.x * 0.75;
  o += threadIdx.x * kDoubles;
  o[0] = sin(x), o[1] = cos(x), o[2] = tan(x * 0.2), o[3] = exp(x), o[4] = log(x), o[5] = pow(x, 1.7), o[6] = sqrt(x), o[7] = rsqrt(x);
  o[8] = atan(x), o[9] = sinh(x), o[10] = erf(x), o[11] = lgamma(x), o[12] = cbrt(x), o[13] = hypot(x, 2.0);
}

int main() {
  float *f = nullptr, floatOut[6 * kFloats];
  double *d = nullptr, doubleOut[6 * kDoubles];
  SHOW(cudaMalloc(&f, sizeof floatOut));
  SHOW(cudaMalloc(&d, sizeof doubleOut));
  floats<<<1, 6>>>(f);
  showLaunch("floats");
  doubles<<<1, 6>>>(d);
  showLaunch("doubles");
  SHOW(cudaMemcpy(floatOut, f, sizeof floatOut, cudaMemcpyDeviceToHost));
  SHOW(cudaMemcpy(doubleOut, d, sizeof doubleOut, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 6 * kFloats; ++i) std::printf(i % kFloats == kFloats - 1 ? "%.3g\n" : "%.3g ", floatOut[i]);
  for (int i = 0; i < 6 * kDoubles; ++i) std::printf(i % kDoubles == kDoubles - 1 ? "%.10g\n" : "%.10g ", doubleOut[i]);
}
