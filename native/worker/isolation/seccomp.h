// System calls that no worker needs once it runs; each is a way out for one that was taken over.
#pragma once

namespace worker {

/// From here on they fail with EPERM (clone3 with ENOSYS, so that the C library uses clone, whose
/// flags can be looked at), on every thread and for ever. Needs PR_SET_NO_NEW_PRIVS. False with
/// errno set when the kernel takes no filter.
bool denySystemCalls();

}  // namespace worker
