// The worker's connection to the arbiter, and the mailbox page. Without an arbiter the page is of zeros, which means: open.
#pragma once

#include <string>

#include "native/arbiter/mailbox.h"

namespace worker {

class ArbiterLink {
 public:
  ArbiterLink();
  ~ArbiterLink();
  ArbiterLink(const ArbiterLink&) = delete;
  ArbiterLink& operator=(const ArbiterLink&) = delete;

  /// Stays where it is; what lies there changes with the connection.
  arbiter::Mailbox& mailbox() const { return *mailbox_; }
  /// The same number for all connections, so that any thread may write to it at any time.
  int file() const { return file_; }
  bool connected() const { return connected_; }

  /// Tries once; false when nobody listens.
  bool connect(const std::string& path);
  /// Takes in what the arbiter has sent: the mailbox, or a byte that something has changed. False, and open, when it is gone.
  bool receive();
  /// Tells the arbiter that the mailbox holds something new. Any thread.
  void poke() const;

 private:
  bool map(int memory);
  void disconnect();

  arbiter::Mailbox* mailbox_;
  int file_;
  bool connected_ = false;
};

}  // namespace worker
