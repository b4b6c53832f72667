// The file that a process has mapped.
#pragma once

#include <sys/types.h>

#include "native/keeper/shared_files.h"

namespace keeper {

/// Opens the file of a mapping again, with the rights that the mapping had when it was listed, and
/// no others. -1 and errno if that fails: ESTALE if the process has another file there now, EINVAL
/// if it is not a regular file. Requires the right to trace the process (ptrace).
int openMapped(pid_t process, const SharedMapping& mapping);

}  // namespace keeper
