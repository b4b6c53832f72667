// Names and types of calls, parameters and fields of the driver API, for traces. The tables
// are generated (trace_facts.cpp). They refer to each other by index, and to names by their place
// in kText.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire/handle_table.h"

namespace interposer::trace {

enum class Kind : std::uint8_t {
  opaque,   ///< a union: another field says which member is valid
  integer,  ///< signed
  natural,  ///< unsigned
  real,
  address,
  handle,
  text,         ///< characters up to 0; `count` is 1 if they are constant
  pointer,      ///< `first` is the type behind it, `count` is 1 if that is constant
  enumeration,  ///< `first` and `count` are a range of kEnumValues
  structure     ///< `first` and `count` are a range of kFields
};

struct Type {
  Kind kind;
  wire::HandleKind handle;  ///< of a handle
  std::uint16_t bytes;
  std::uint16_t first;
  std::uint16_t count;
};

struct CallFacts {
  std::uint32_t name;
  std::uint16_t firstParameter;
  std::uint16_t parameters;
};

struct Parameter {
  std::uint32_t name;
  std::uint16_t type;
  std::int16_t length;  ///< the parameter with the number of elements; -1: there is one
};

struct Field {
  std::uint32_t name;
  std::uint16_t type;
  std::uint16_t offset;
  std::uint32_t elements;
};

struct EnumValue {
  std::int32_t value;
  std::uint32_t name;
};

/// Work that a call gives to the GPU.
enum class Work : std::uint8_t { none, kernel, copy, memset };

struct WorkFacts {
  std::uint32_t name;  ///< such as "memcpy HtoD"
  Work work;
};

extern const CallFacts kCalls[];  ///< by the number of an exported call
extern const std::size_t kTracedCalls;
extern const Parameter kParameters[];
extern const Type kTypes[];
extern const Field kFields[];
extern const EnumValue kEnumValues[];
extern const WorkFacts kWorks[];  ///< by CallNumber
extern const std::size_t kWorkCount;
extern const char kText[];

}  // namespace interposer::trace
