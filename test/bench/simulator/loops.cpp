// Runs one of the kernels of loops.cu, or the same loop in C++ on one core, and prints the
// milliseconds of the fastest of several runs: loops LIBRARY|host PTX KERNEL RUNS [check]
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

namespace {

constexpr int kCount = 1 << 18, kSize = 512, kTurns = 512, kMatrix = 256, kTile = 1024;

struct Shape {
  const char* name;
  unsigned grid[2], block[2];
  int argument;
};
constexpr Shape kShapes[] = {{"arithmetic", {256, 1}, {256, 1}, kTurns},
                             {"product", {kMatrix / 16, kMatrix / 16}, {16, 16}, kMatrix},
                             {"sort", {kCount / kTile, 1}, {256, 1}, 0},
                             {"scan", {kCount / kTile, 1}, {256, 1}, 0},
                             {"stencil", {kSize / 32, kSize / 8}, {32, 8}, kSize}};

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}

/// A function of the driver. Every call must succeed.
template <class... Arguments>
void call(void* library, const char* name, Arguments... arguments) {
  auto* function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name));
  if (function == nullptr) fail(std::string("no ") + name);
  if (const int result = function(arguments...); result != 0)
    fail(std::string(name) + ": " + std::to_string(result));
}

double best(int runs, const std::function<void()>& body) {
  double result = 1e9;
  for (int run = 0; run < runs; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    body();
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
    result = std::min(result, time.count());
  }
  return result;
}

void arithmetic(float* out, const float* in) {
  for (int block = 0; block < 256; ++block) {
    for (int thread = 0; thread < 256; ++thread) {
      float a = in[thread], b = a + 1, c = a + 2, d = a + 3;
      for (int turn = 0; turn < kTurns; ++turn) {
        a = std::fma(a, 0.9999f, 0.1f);
        b = std::fma(b, 0.9999f, 0.1f);
        c = std::fma(c, 0.9999f, 0.1f);
        d = std::fma(d, 0.9999f, 0.1f);
      }
      out[block * 256 + thread] = a + b + c + d;
    }
  }
}

void product(float* out, const float* in) {
  std::fill(out, out + kMatrix * kMatrix, 0.f);
  for (int row = 0; row < kMatrix; ++row) {
    for (int k = 0; k < kMatrix; ++k) {
      const float left = in[row * kMatrix + k];
      for (int column = 0; column < kMatrix; ++column)
        out[row * kMatrix + column] =
            std::fma(left, in[k * kMatrix + column], out[row * kMatrix + column]);
    }
  }
}

void sort(unsigned* out, const unsigned* in) {
  std::copy(in, in + kCount, out);
  for (unsigned* tile = out; tile < out + kCount; tile += kTile) std::sort(tile, tile + kTile);
}

void scan(unsigned* out, const unsigned* in) {
  for (int tile = 0; tile < kCount; tile += kTile)
    std::partial_sum(in + tile, in + tile + kTile, out + tile);
}

void stencil(float* out, const float* in) {
  for (int y = 1; y < kSize - 1; ++y) {
    for (int x = 1; x < kSize - 1; ++x) {
      const int i = y * kSize + x;
      out[i] = (in[i] + in[i - 1] + in[i + 1] + in[i - kSize] + in[i + kSize]) * 0.2f;
    }
  }
}

void onHost(const std::string& kernel, std::vector<unsigned>& out,
            const std::vector<unsigned>& in) {
  auto* floatsOut = reinterpret_cast<float*>(out.data());
  const auto* floatsIn = reinterpret_cast<const float*>(in.data());
  if (kernel == "arithmetic") arithmetic(floatsOut, floatsIn);
  if (kernel == "product") product(floatsOut, floatsIn);
  if (kernel == "sort") sort(out.data(), in.data());
  if (kernel == "scan") scan(out.data(), in.data());
  if (kernel == "stencil") stencil(floatsOut, floatsIn);
}

double onDevice(const char* path, const char* ptx, const Shape& shape, int runs,
                std::vector<unsigned>& out, const std::vector<unsigned>& in) {
  void* library = dlopen(path, RTLD_NOW);
  if (library == nullptr) fail(dlerror());
  std::ifstream file(ptx);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  void *context = nullptr, *module = nullptr, *function = nullptr;
  unsigned long long to = 0, from = 0;
  const std::size_t bytes = in.size() * sizeof in[0];
  call(library, "cuInit", 0u);
  call(library, "cuDevicePrimaryCtxRetain", &context, 0);
  call(library, "cuCtxSetCurrent", context);
  call(library, "cuModuleLoadData", &module, static_cast<const void*>(text.c_str()));
  call(library, "cuModuleGetFunction", &function, module, shape.name);
  call(library, "cuMemAlloc_v2", &to, bytes);
  call(library, "cuMemAlloc_v2", &from, bytes);
  call(library, "cuMemcpyHtoD_v2", to, static_cast<const void*>(out.data()), bytes);
  call(library, "cuMemcpyHtoD_v2", from, static_cast<const void*>(in.data()), bytes);
  int argument = shape.argument;
  void* parameters[] = {&to, &from, &argument};
  const double time = best(runs, [&] {
    call(library, "cuLaunchKernel", function, shape.grid[0], shape.grid[1], 1u, shape.block[0],
         shape.block[1], 1u, 0u, static_cast<void*>(nullptr), static_cast<void**>(parameters),
         static_cast<void**>(nullptr));
    call(library, "cuCtxSynchronize");
  });
  call(library, "cuMemcpyDtoH_v2", static_cast<void*>(out.data()), to, bytes);
  return time;
}

/// The first eighth is compared: with floats, up to what another order of additions changes.
void compare(const Shape& shape, const std::vector<unsigned>& out,
             const std::vector<unsigned>& in) {
  std::vector<unsigned> expected(kCount);
  onHost(shape.name, expected, in);
  const bool floats = shape.argument != 0;
  for (int i = 0; i < kCount / 8; ++i) {
    float a = 0, b = 0;
    std::memcpy(&a, &out[i], sizeof a);
    std::memcpy(&b, &expected[i], sizeof b);
    if (floats ? std::fabs(a - b) > 1e-4f * std::fabs(b) : out[i] != expected[i])
      fail(std::string(shape.name) + ": element " + std::to_string(i) + " is wrong");
  }
}

}  // namespace

int main(int argumentCount, char** arguments) {
  const std::string kernel = arguments[3];
  const int runs = std::atoi(arguments[4]);
  const auto* shape = std::find_if(std::begin(kShapes), std::end(kShapes),
                                   [&](const Shape& each) { return kernel == each.name; });
  std::vector<unsigned> in(kCount), out(kCount);
  unsigned random = 1;
  for (unsigned& value : in) {
    random = random * 1664525 + 1013904223;
    const float number = static_cast<float>(random >> 8) * 0x1p-24f;
    if (shape->argument == 0)
      value = random;
    else
      std::memcpy(&value, &number, sizeof value);
  }
  double time = 0;
  if (std::string(arguments[1]) == "host") {
    time = best(runs, [&] { onHost(kernel, out, in); });
  } else {
    time = onDevice(arguments[1], arguments[2], *shape, runs, out, in);
    if (argumentCount > 5) compare(*shape, out, in);
  }
  std::printf("%.4f\n", time);
}
