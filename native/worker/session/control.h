// Commands of gpu-proxy to a running worker: one datagram each, with the write end of a pipe for
// the answer. The tenant cannot reach the socket, which lies in the session's directory. gpu-proxy
// receives nothing from a socket, because descriptors could come with it whose close blocks.
//
// | command              | answer: what follows, or `error SENTENCE`                            |
// | suspend MILLISECONDS | `done BYTES`: it is suspended, and so much of its memory can leave;  |
// |                      | `stays SENTENCE`: suspended, but its memory cannot leave. Error: it  |
// |                      | goes on unchanged                                                    |
// | leave                | `done`: the memory is in the arena. Error: it stays on the GPU       |
// | resume               | `done`. Error: it stays suspended, and its memory in the arena       |
// | drop                 | `done`: the arena is given up. Error: it is kept                     |
//
// `leave` comes with an arena as a second descriptor, unless the worker has one that suffices.
#pragma once

#include <string>
#include <string_view>

#include "native/worker/session/suspension.h"

namespace worker {

class Control {
 public:
  /// `socket` receives the datagrams.
  Control(int socket, Session& session)
      : socket_(socket), session_(session), suspension_(session) {}

  /// Executes the commands that have come already, then goes on in a thread of its own, until the
  /// process exits. Call it before the session's first frame: a session that begins in a suspended
  /// allocation is suspended by then.
  void serve();

 private:
  bool serveNext(int flags);
  std::string execute(std::string_view command, OwnedFile arena);

  const int socket_;
  Session& session_;
  Suspension suspension_;
};

}  // namespace worker
