#include "native/worker/thread.h"

#include "worker_bodies.h"

namespace worker {

void Thread::serve() {
  wire::FrameHeader header{};
  wire::Decoder payload;
  while (!ended_ && channel_->next(header, payload)) {
    if (!session.turn.await(header.ticket)) return;
    ticket_ = header.ticket;
    wire::Encoder reply = channel_->replyEncoder();
    const CUresult status = dispatch(*this, header, payload, reply);
    passTicket();
    if (status != CUDA_SUCCESS) session.noteFault(status);
    if ((header.flags & wire::kFrameWantsReply) != 0) {
      session.output.send(session);
      channel_->reply(reply, status, session.output.position());
    } else if (status != CUDA_SUCCESS) {
      channel_->deferError(status);
    }
  }
  if (channel_->end() == wire::ChannelEnd::nonsense) session.fail("the client wrote a frame that cannot be");
}

void Thread::passTicket() {
  pass_.leave();
  session.turn.pass(ticket_);
  ticket_ = 0;
}

CUresult Thread::refuseFrame() {
  session.fail("the client sent a frame that does not parse");
  ended_ = true;
  return CUDA_ERROR_DEVICE_UNAVAILABLE;
}

}  // namespace worker
