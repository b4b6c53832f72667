// A node's parameters on their way to the worker: the structure, and what its pointers lead to.
#pragma once

#include <cstddef>
#include <vector>

#include "cuda_abi.h"
#include "wire/encoder.h"

namespace interposer {

class NodeFrame {
 public:
  /// Reads what the program gave.
  CUresult read(const CUgraphNodeParams& given);

  std::size_t bytes() const { return sizeof params_ + 8 + wire::Encoder::padded(content_.size()); }
  void put(wire::Encoder& encoder) const {
    encoder.put(params_);
    encoder.putBytes(content_.data(), content_.size());
  }

 private:
  CUresult readKernel();

  CUgraphNodeParams params_{};
  std::vector<std::byte> content_;
};

}  // namespace interposer
