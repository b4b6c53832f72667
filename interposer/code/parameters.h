// A kernel's parameters as the program gives them: an array of pointers, or one buffer.
#pragma once

#include <cstddef>
#include <vector>

#include "interposer/code/kernels.h"

namespace interposer {

struct Parameters {
  const std::vector<KernelParameter>* layout = nullptr;
  void** pointers = nullptr;
  const std::byte* buffer = nullptr;
  std::size_t bytes = 0;
};

CUresult readParameters(Kernel& kernel, void** kernelParams, void** extra, Parameters& parameters);

/// Writes them into one buffer of `parameters.bytes`.
void copyParameters(std::byte* to, const Parameters& parameters);

}  // namespace interposer
