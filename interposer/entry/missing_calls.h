// Names that cuGetProcAddress did not find. Whether the program would call one is unknown: it gets
// a null pointer.
#pragma once

#include <string_view>

namespace interposer {

/// A CUDA runtime starts to query its whole table on this thread, whether needed or not. It calls
/// cuInit at the end.
void beginRuntimeTable();

/// Records a name that was not found, and reports it to the worker once. CUDA_LOG_FILE gets only
/// names that the program itself asked for: a runtime asks for all names that it knows.
void noteMissing(std::string_view name);

/// cuInit on this thread has opened the session: ends the runtime's table, and reports the names
/// recorded before.
void tellMissing();

}  // namespace interposer
