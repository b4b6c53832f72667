// The self-test that NVIDIA's runtime runs against the driver it has loaded. README.md says what it
// is and why it is answered.
#pragma once

#include <cstdint>

namespace interposer {

/// Inputs of the hash beside the process: the tables that the runtime uses.
struct IntegrityTables {
  const void* runtimeInterface;
  const void* integrity;
  const void* integrityFunction;
};

void integrityAnswer(std::uint32_t selector, std::uint64_t unixSeconds,
                     const IntegrityTables& tables, std::uint8_t (&answer)[16]);

}  // namespace interposer
