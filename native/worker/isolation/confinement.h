// Rights that a worker gives up before it serves a client, which it does not trust.
#pragma once

#include <sys/types.h>

#include <string>

namespace worker {

/// This process leaves no core dump: it would hold a tenant's data, among the host's files.
void refuseCoreDumps();

/// Puts the cache, or nothing at all where that is empty, in the place of the directory in which
/// all allocations of the node are. The process must have mounts of its own
/// (native/launcher/room.h). A sentence when that is impossible.
std::string hideAllocations(const std::string& allocations, const std::string& cache);

/// Becomes the user, and the group of the same number, on every thread; all capabilities go. Pipes
/// of the driver become the user's. A sentence when that is impossible.
std::string becomeUser(uid_t user);

/// No program that it starts gains rights, and system calls that a worker has no use for are
/// refused (seccomp.h), on every thread. A sentence when the system does not do that.
std::string confine();

}  // namespace worker
