#include "roundtrip.h"

#include <algorithm>

#include "interposer/session/call.h"
#include "native/worker/session/thread.h"
#include "worker_bodies.h"

namespace {

/// Executes the first bytes of the recorded request. True if the worker refused it and did nothing.
bool refuses(const std::vector<std::byte>& request, std::size_t bytes) {
  roundtrip::Record& record = roundtrip::record();
  record.refused = record.executed = 0;
  std::vector<std::byte> answers(wire::kReplyBytes);
  wire::Decoder in(request.data(), bytes);
  wire::Encoder out(answers.data(), answers.size());
  worker::dispatch(roundtrip::thread(), {0, record.number, 0, 0}, in, out);
  return record.refused == 1 && record.executed == 0;
}

}  // namespace

namespace roundtrip {

Record& record() {
  static Record record;
  return record;
}

worker::Thread& thread() {
  static worker::Thread thread;
  return thread;
}

void test(const std::function<CUresult()>& call) {
  record() = {};
  CHECK(call() == CUDA_SUCCESS);
  CHECK(record().executed == 1);
  CHECK(record().refused == 0);
  std::vector<std::byte> request = record().request;
  for (std::size_t bytes = 0; bytes < request.size(); ++bytes) CHECK(refuses(request, bytes));
  request.resize(request.size() + 8);
  CHECK(refuses(request, request.size()));
  const std::size_t replyBytes = record().replyBytes;
  for (std::size_t bytes = 0; bytes < replyBytes; ++bytes) {
    record().replyCut = bytes;
    CHECK(call() == CUDA_ERROR_DEVICE_UNAVAILABLE);
  }
}

void testNull(const std::function<CUresult()>& call) {
  record() = {};
  CHECK(call() == CUDA_ERROR_INVALID_VALUE);
  CHECK(record().executed == 0);
  CHECK(record().request.empty());
}

}  // namespace roundtrip

namespace interposer {

bool Call::begin(CallNumber number, std::size_t payloadBytes, Order) {
  if (payloadBytes > request_.size()) return false;
  number_ = number;
  encoder_ = wire::Encoder(request_.data(), payloadBytes);
  return true;
}

CUresult Call::wait(wire::Decoder& reply) {
  roundtrip::Record& record = roundtrip::record();
  CHECK(!encoder_.failed());
  record.number = static_cast<std::uint16_t>(number_);
  record.request.assign(encoder_.data(), encoder_.data() + encoder_.size());
  wire::Decoder in(record.request.data(), record.request.size());
  wire::Encoder out(reply_.data(), reply_.size());
  const CUresult status = worker::dispatch(roundtrip::thread(), {0, record.number, 0, 0}, in, out);
  record.replyBytes = out.size();
  reply = wire::Decoder(reply_.data(), std::min(out.size(), record.replyCut));
  return status;
}

CUresult Call::enqueue(bool) {
  wire::Decoder reply;
  return wait(reply);
}

}  // namespace interposer
