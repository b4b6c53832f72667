// What a worker gives up before it serves a client, which it does not trust.
#pragma once

#include <sys/types.h>

#include <string>

namespace worker {

/// Becomes the user, and the group of the same number, on every thread; all capabilities go. A sentence when that is impossible.
std::string becomeUser(uid_t user);

/// No program that it starts gains rights, and system calls that a worker has no use for are refused (seccomp.h), on every thread. A
/// sentence when the system does not do that.
std::string confine();

}  // namespace worker
