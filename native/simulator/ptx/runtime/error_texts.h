// The texts of cudaGetErrorName and cudaGetErrorString, which kernels may read.
#pragma once

#include <cstdint>

namespace simulator::ptx {

const char* errorName(std::uint32_t error);
const char* errorString(std::uint32_t error);
/// Whether the range lies inside the texts.
bool insideErrorTexts(std::uint64_t address, std::uint64_t bytes);

}  // namespace simulator::ptx
