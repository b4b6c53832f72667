// The memory file behind a mailbox. The arbiter creates it and sends it to the worker.
#pragma once

#include "native/arbiter/mailbox.h"

namespace arbiter {

/// Creates a memory file that cannot shrink, and maps it at `mailbox`. Only magic and version are
/// set. Returns its descriptor, or -1 if there is no memory.
int createMailbox(Mailbox*& mailbox);

/// Sends the file to the worker over the connection. False if the worker does not receive it.
bool sendMailbox(int connection, int file);

}  // namespace arbiter
