// Accesses of this process to pages that it does not hold now, by userfaultfd. Accesses inside
// system calls wait, too. Works on mappings of memory files whose pages exist.
#pragma once

#include <cstdint>

namespace interposer {

struct PageFault {
  std::uint64_t address = 0;
  bool writes = false;
  bool isProtected = false;  ///< the page is here, read-only
};

/// `device`: /dev/userfaultfd, which may belong to another process. False if the system does not
/// offer what this needs (Linux 6.6). Once per process.
bool openPageFaults(int device);
void closePageFaults();

/// Reports accesses to absent pages of the range from now on. Pages that are present stay so.
bool followPages(std::uint64_t begin, std::uint64_t end);
/// No longer: the system makes all pages accessible that the file has.
void unfollowPages(std::uint64_t begin, std::uint64_t end);
/// Makes pages absent. The file keeps their content. False if the program has unmapped them.
bool takePages(std::uint64_t begin, std::uint64_t end);
/// Makes absent pages accessible, and wakes the threads that wait for them.
void givePages(std::uint64_t begin, std::uint64_t end, bool writable);
/// Makes read-only pages writable, and wakes the threads that wait for that.
void letWritePages(std::uint64_t begin, std::uint64_t end);
/// Access to the absent pages gives SIGBUS.
void losePages(std::uint64_t begin, std::uint64_t end);
/// Lets the threads that wait repeat their access.
void wakePages(std::uint64_t begin, std::uint64_t end);

/// Waits for an access. False if there will be none.
bool awaitPageFault(PageFault& fault);

}  // namespace interposer
