// memfd_create as a system call. The kernel has it since 3.17, but the C library only since 2.27,
// and programs bring their own.
#pragma once

#include <linux/memfd.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace wire {

/// Creates a file without a name in any directory. `flags` are those of memfd_create. Returns its
/// descriptor, or -1 with errno set.
inline int createAnonymousFile(const char* name, unsigned flags) {
  return static_cast<int>(syscall(SYS_memfd_create, name, flags));
}

}  // namespace wire
