#include "interposer/trace/worker_timeline.h"

#include "interposer/session/call.h"

namespace interposer::trace {

wire::Timeline fetchTimeline(bool wait, std::vector<wire::TimelineItem>& items) {
  items.clear();
  Session* const session = Session::current();
  Call call;
  if (session == nullptr || session->lost() || !call.begin(CallNumber::readTimeline, 8, kUnordered))
    return {};
  call.encoder().put<std::uint32_t>(wait ? 1 : 0);
  wire::Decoder reply;
  call.wait(reply);
  const auto answer = reply.get<wire::Timeline>();
  const auto found = reply.getArray<wire::TimelineItem>(wire::kReplyBytes);
  if (!reply.ok()) return {};
  items.assign(found.begin(), found.end());
  return items.empty() ? wire::Timeline{answer.lost, 0} : answer;
}

}  // namespace interposer::trace
