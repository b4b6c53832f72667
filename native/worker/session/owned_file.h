#pragma once

#include <unistd.h>

#include <utility>

namespace worker {

/// A descriptor that is closed with this object.
class OwnedFile {
 public:
  explicit OwnedFile(int file = -1) : file_(file) {}
  OwnedFile(OwnedFile&& other) noexcept : file_(other.release()) {}
  OwnedFile& operator=(OwnedFile&& other) noexcept { return std::swap(file_, other.file_), *this; }
  ~OwnedFile() {
    if (file_ >= 0) close(file_);
  }
  int get() const { return file_; }
  int release() { return std::exchange(file_, -1); }

 private:
  int file_;
};

}  // namespace worker
