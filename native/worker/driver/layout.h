// The address-space layout of this process. Memory that the driver maps must not overlap the
// client's own memory.
#pragma once

namespace worker {

/// Whether this is the layout for a client that has kept the driver's ranges free (or not): the
/// legacy one, where nothing can share an address with an ordinary client, whose mappings grow down
/// from 0x7fff…. A client that is in that layout itself is served from the default one.
bool layoutSuits(bool deviceRangesTaken);

/// Starts this program again in the other layout. Returns when the system refuses, having said so
/// in the log.
void changeLayout(char** arguments);

/// Starts this program again as it is.
void startAgain(char** arguments);

}  // namespace worker
