// The memory file behind a mailbox: the arbiter makes it and gives it to the worker.
#pragma once

#include "native/arbiter/mailbox.h"

namespace arbiter {

/// A memory file that nobody can shrink under us, mapped at `mailbox`, which says what it is and nothing else yet. -1: there is no memory.
int createMailbox(Mailbox*& mailbox);

/// To the worker at the other end of the connection. False when it does not take it.
bool sendMailbox(int connection, int file);

}  // namespace arbiter
