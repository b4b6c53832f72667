// memfd_create is older in the kernel (3.17) than in the C library (2.27), and programs bring their own C library.
#pragma once

#include <linux/memfd.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace wire {

/// A file without a name in any directory. -1 with errno when there is none; `flags` are those of memfd_create.
inline int createAnonymousFile(const char* name, unsigned flags) { return static_cast<int>(syscall(SYS_memfd_create, name, flags)); }

}  // namespace wire
