// Modules and libraries of sizes around those at which the product sends an image in another way: each loads, runs and unloads.
// conformance: flags=-lcuda judges=itself
#include <string>

#include "stream_memory.h"

const std::string kText = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry fill(.param .u64 at, .param .u32 x) {
  .reg .u64 %rd<3>;
  .reg .u32 %r<2>;
  ld.param.u64 %rd1, [at];
  cvta.to.global.u64 %rd2, %rd1;
  ld.param.u32 %r1, [x];
  st.global.u32 [%rd2], %r1;
  ret;
}
)";

/// The text, with a comment that makes it `bytes` long with its terminator.
std::string padded(size_t bytes) {
  std::string text = kText + "//";
  text.append(bytes - 2 - text.size(), 'x');
  return text + '\n';
}

void launches(CUfunction function, const Words& words, unsigned value) {
  CUdeviceptr at = words.device;
  void* arguments[] = {&at, &value};
  OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
  OK(cuCtxSynchronize());
  EXPECT(words.at(0) == value);
}

void module(const std::string& image, const Words& words) {
  CUmodule loaded = nullptr;
  CUfunction function = nullptr;
  OK(cuModuleLoadData(&loaded, image.c_str()));
  OK(cuModuleGetFunction(&function, loaded, "fill"));
  launches(function, words, unsigned(image.size()));
  OK(cuModuleUnload(loaded));
}

void library(const std::string& image, const Words& words) {
  CUlibrary loaded = nullptr;
  CUkernel kernel = nullptr;
  OK(cuLibraryLoadData(&loaded, image.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  OK(cuLibraryGetKernel(&kernel, loaded, "fill"));
  launches(reinterpret_cast<CUfunction>(kernel), words, unsigned(image.size()) + 1);
  OK(cuLibraryUnload(loaded));
}

/// Text that is no PTX, and the image behind it, which loads all the same.
void damaged(const std::string& image, const Words& words) {
  std::string wrong = image;
  wrong.replace(wrong.find("st.global"), 9, "no.global");
  CUmodule loaded = nullptr;
  EXPECT(cuModuleLoadData(&loaded, wrong.c_str()) == CUDA_ERROR_INVALID_PTX);
  module(image, words);
}

int main() {
  EXPECT_OK(cudaFree(nullptr));
  const Words words;
  for (const size_t bytes : {1000, 65511, 65512, 65520, 65527, 65528, 65529, 65535, 65536, 65537, 70000, 98304, 300000}) {
    const std::string image = padded(bytes);
    EXPECT(image.size() + 1 == bytes);
    module(image, words);
    library(image, words);
    damaged(image, words);
  }
  return verdict();
}
