// The device memory that the variables of PTX text take.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace worker {

struct PtxMemory {
  std::uint64_t bytes =
      0;                ///< at least what the driver takes for the variables, never more than 2^50
  std::string refusal;  ///< a sentence that says why the text cannot be sized; empty when it was
};

/// Reads the declarations of .global and .const variables by the lexical rules of ptxas 13.0
/// (test/ptx-memory.test.ts compares both). The text is a tenant's, so whatever could mean
/// something else to the driver is refused. Code is not counted.
PtxMemory ptxMemory(std::string_view text);

}  // namespace worker
