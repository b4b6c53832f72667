// Fat binaries as nvcc writes them: every compression, several architectures, relocatable device
// code of two files. Skipped if CUDA_HOME names no nvcc; `npm test` sets it.
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "native/simulator/test/driver_test.h"

namespace {

namespace fs = std::filesystem;

constexpr char kOne[] = R"(
__device__ int factor = 3;
extern "C" __global__ void scale(int* x) { x[threadIdx.x] *= factor; }
)";
constexpr char kCaller[] = R"(
extern __device__ int twice(int);
extern "C" __global__ void scale(int* x) {
  x[threadIdx.x] = twice(x[threadIdx.x]) + x[threadIdx.x];
}
)";
constexpr char kCallee[] =
    "__device__ int two = 2; __device__ int twice(int x) { return two * x; }\n";

/// Empty when CUDA_HOME is not set or holds no nvcc.
fs::path findNvcc() {
  const char* home = std::getenv("CUDA_HOME");
  const fs::path nvcc = home == nullptr ? fs::path() : fs::path(home) / "bin/nvcc";
  return fs::exists(nvcc) ? nvcc : fs::path();
}

/// nvcc with a directory for its files.
class Compiler {
 public:
  Compiler() {
    char path[] = "/tmp/simulator_nvcc_test.XXXXXX";
    if (mkdtemp(path) == nullptr) std::abort();
    directory_ = path;
  }
  ~Compiler() { fs::remove_all(directory_); }
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;

  /// False if there is no nvcc; the test case is then skipped.
  bool isPresent() const {
    if (nvcc_.empty()) unit::skip("no nvcc (set CUDA_HOME)");
    return !nvcc_.empty();
  }

  /// A fat binary of one source; empty if nvcc refuses.
  std::vector<char> compile(const char* source, const std::string& options) {
    const fs::path from = directory_ / "source.cu", to = directory_ / "out.fatbin";
    std::ofstream(from) << source;
    fs::remove(to);
    const std::string command =
        nvcc_.string() + " --fatbin " + options + " -o " + to.string() + " " + from.string();
    if (std::system(command.c_str()) != 0) std::fprintf(stderr, "failed: %s\n", command.c_str());
    std::ifstream file(to, std::ios::binary);
    return std::vector<char>(std::istreambuf_iterator<char>(file), {});
  }

 private:
  const fs::path nvcc_ = findNvcc();
  fs::path directory_;
};

/// Loads an image and lets its kernel triple four numbers.
void triples(const void* image, const std::string& what) {
  CUmodule module = nullptr;
  CUfunction scale = nullptr;
  CAPTURE(what);
  REQUIRE(DRIVER(cuModuleLoadData)(&module, image) == CUDA_SUCCESS);
  OK(DRIVER(cuModuleGetFunction)(&scale, module, "scale"));
  CUdeviceptr p = 0;
  int x[4] = {1, 2, 3, 4};
  OK(DRIVER(cuMemAlloc_v2)(&p, sizeof x));
  OK(DRIVER(cuMemcpyHtoD_v2)(p, x, sizeof x));
  void* parameters[] = {&p};
  OK(DRIVER(cuLaunchKernel)(scale, 1, 1, 1, 4, 1, 1, 0, nullptr, parameters, nullptr));
  OK(DRIVER(cuMemcpyDtoH_v2)(x, p, sizeof x));
  CHECK(x[0] == 3);
  CHECK(x[1] == 6);
  CHECK(x[2] == 9);
  CHECK(x[3] == 12);
  OK(DRIVER(cuMemFree_v2)(p));
  OK(DRIVER(cuModuleUnload)(module));
}

TEST_CASE("every compression of nvcc is read") {
  Compiler compiler;
  if (!compiler.isPresent()) return;
  usePrimaryContext();
  for (const char* mode : {"default", "size", "speed", "balance", "none"}) {
    const std::string options = std::string("-arch=sm_80 --compress-mode=") + mode;
    triples(compiler.compile(kOne, options).data(), options);
  }
}

TEST_CASE("the best PTX of several architectures is chosen") {
  Compiler compiler;
  if (!compiler.isPresent()) return;
  usePrimaryContext();
  const std::string several =
      "-gencode arch=compute_75,code=sm_75 -gencode arch=compute_75,code=compute_75 -gencode "
      "arch=compute_90,code=compute_90 "
      "-gencode arch=compute_100,code=compute_100";
  triples(compiler.compile(kOne, several).data(), several);
  triples(compiler.compile(kOne, "-arch=sm_90a").data(), "sm_90a");
  CUmodule module = nullptr;
  EXPECT(CUDA_ERROR_NO_BINARY_FOR_GPU,
         DRIVER(cuModuleLoadData)(&module, compiler.compile(kOne, "-arch=sm_100").data()));
  EXPECT(CUDA_ERROR_NO_BINARY_FOR_GPU,
         DRIVER(cuModuleLoadData)(
             &module, compiler.compile(kOne, "-gencode arch=compute_75,code=sm_75").data()));
}

// For a program linked with -rdc=true, the runtime hands over the linked machine code and the fat
// binaries of the files.
TEST_CASE("relocatable code of two files is linked") {
  Compiler compiler;
  if (!compiler.isPresent()) return;
  usePrimaryContext();
  const std::string options = "-rdc=true -arch=sm_80";
  const std::vector<char> caller = compiler.compile(kCaller, options),
                          callee = compiler.compile(kCallee, options);
  const void* elements[] = {caller.data(), callee.data(), nullptr};
  const struct {
    unsigned magic, version;
    const void* data;
    const void* const* elements;
  } wrapper{0x466243b1, 2, caller.data(), elements};
  triples(&wrapper, "two files of relocatable code");
}

}  // namespace
