// The private tables that cuGetExportTable hands out, as far as the runtime and the math libraries
// need them.
#pragma once

#include "cuda_abi.h"

namespace interposer {

/// The table with this identity, for as long as the process lives; null when there is none.
const void* exportTable(const CUuuid& id);

}  // namespace interposer
