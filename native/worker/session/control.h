// Commands of gpu-proxy to a running worker: one datagram each, with the write end of a pipe for
// the answer. The tenant cannot reach the socket, which lies in the session's directory. gpu-proxy
// receives nothing from a socket, because descriptors could come with it whose close blocks.
//
// | command                | answer                                                          |
// | suspend MILLISECONDS   | `done`, or `error SENTENCE` after so long: nothing has changed  |
// | resume                 | `done`                                                          |
#pragma once

#include <string>
#include <string_view>

#include "native/worker/session/suspension.h"

namespace worker {

class Control {
 public:
  /// `socket` receives the datagrams.
  Control(int socket, Session& session) : socket_(socket), suspension_(session) {}

  /// Executes the commands that have come already, then goes on in a thread of its own, until the
  /// process exits. Call it before the session's first frame: a session that begins in a suspended
  /// allocation is suspended by then.
  void serve();

 private:
  bool serveNext(int flags);
  std::string execute(std::string_view command);

  const int socket_;
  Suspension suspension_;
};

}  // namespace worker
