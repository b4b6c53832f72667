// Commands of gpu-proxy to a running worker: one datagram each, with the write end of a pipe for
// the answer. The tenant cannot reach the socket, which lies in the session's directory. gpu-proxy
// receives nothing from a socket, because descriptors could come with it whose close blocks.
//
// | command              | answer: what follows, or `error SENTENCE`                              |
// | suspend MILLISECONDS | `done BYTES`: it is suspended, and so much of its memory can leave;    |
// |                      | `stays SENTENCE`: suspended, but its memory cannot leave. Error: it    |
// |                      | goes on unchanged                                                      |
// | leave BYTES          | `done OUT`: pieces of at least BYTES, or all that can, have left, and  |
// |                      | OUT bytes are in the arena now; `lacks MORE`: nothing has moved, the   |
// |                      | arena must have so many bytes more. Error: nothing has moved           |
// | enter BYTES          | `done OUT`: pieces of at most BYTES are back, and OUT bytes are still  |
// |                      | in the arena. Error: nothing has moved                                 |
// | move UUID            | `done`: it is on that GPU. Its memory must have left. Error: it is on |
// |                      | the former one                                                         |
// | park                 | `done`: it is off its GPU, and all threads stand still. Error: it is   |
// |                      | suspended on its GPU                                                   |
// | detach               | `done`: it has no file that others have. Only after `park`             |
// | unpark               | `done`: as before `park`. Not after `detach`: then the files come      |
// |                      | through a socket of its own (native/keeper/shared_files.h)             |
// | resume               | `done`: all memory is back, and it goes on. Error: it stays suspended, |
// |                      | and nothing has moved                                                  |
// | drop                 | `done`: the arena is given up. Error: it is kept                       |
//
// `leave` may come with a file as a second descriptor, which is added to the arena. The arena is
// kept for the next time.
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
  std::string execute(std::string_view command, OwnedFile file);
  std::string executeNumber(std::string_view word, std::uint64_t number, OwnedFile file);

  const int socket_;
  Session& session_;
  Suspension suspension_;
};

}  // namespace worker
