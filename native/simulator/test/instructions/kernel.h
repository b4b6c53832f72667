// PTX that applies a form to every thread's operands.
#pragma once

#include <span>

#include "native/simulator/test/instructions/form.h"

namespace instructions {

/// 64-bit words that one thread reads and writes. It writes both results, then both results of the
/// same form under a guard that holds for odd threads; without the guard a result keeps kSentinel
/// (a predicate: false).
inline constexpr unsigned kWordsRead = 4, kWordsWritten = 4;
inline constexpr u64 kSentinel = 0xa5a55a5ac3c33c3c;
/// The kernel's third parameter.
inline constexpr u64 kNumber = 0x8182838485868788;

/// One module; the kernel of form i is "f<i>".
std::string moduleFor(std::span<const Form> forms);
/// Only the instructions, one a line, on registers without values.
std::string bareModuleFor(std::span<const Form> forms);

}  // namespace instructions
