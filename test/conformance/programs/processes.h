// Two processes that talk to each other, made before the first CUDA call. Each has its own GPU context.
#pragma once

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

class Processes {
 public:
  Processes() {
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends_) != 0) _exit(2);
    child_ = fork();
    if (child_ == 0) std::swap(ends_[0], ends_[1]);
    close(ends_[1]);
  }

  bool isChild() const { return child_ == 0; }
  int socket() const { return ends_[0]; }

  template <class T>
  void send(const T& value) const {
    if (write(ends_[0], &value, sizeof value) != sizeof value) _exit(2);
  }
  template <class T>
  T receive() const {
    T value{};
    if (recv(ends_[0], &value, sizeof value, MSG_WAITALL) != sizeof value) _exit(2);
    return value;
  }
  /// Waits until the other process has called it, too.
  void meet() const {
    send('m');
    receive<char>();
  }
  /// The exit status: the child's expectations count in the parent.
  int end() {
    if (isChild()) {
      std::fflush(stdout);
      _exit(wrongExpectations == 0 ? 0 : 1);
    }
    int status = -1;
    waitpid(child_, &status, 0);
    expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child is content", __LINE__);
    return verdict();
  }

 private:
  int ends_[2];
  pid_t child_;
};
