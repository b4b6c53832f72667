// Exchange of files with the simulated drivers of other processes.
#pragma once

#include <cstdint>

#include "wire/file_offers.h"

namespace simulator {

/// Names a file that a process offers. Part of the handles that programs pass to each other.
struct OfferedFile {
  wire::FileKey key;
  char process[24];  ///< name of the process's socket, which ends with a zero
};

/// Offers a file to other processes. The offer owns the file from now on. False if that is
/// impossible.
bool offerFile(int file, OfferedFile& name);
void withdrawFile(const OfferedFile& name);
/// Whether this process offers it.
bool offeredHere(const OfferedFile& name);
/// Fetches a file of another process; -1 if it is not offered.
int fetchFile(const OfferedFile& name);

}  // namespace simulator
