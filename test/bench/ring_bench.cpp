// The cost of wire's channel compared with a minimal ring, between two processes. Each figure is
// the median of many short rounds that alternate between both rings, so that load on the machine
// affects both equally. One JSON object per line: {"name": "...", "nanoseconds": ...}, and
// {"name": "...", "ratio": ...}, the median of the ratios within a round.
//
// enqueue_128: many payloads of 128 bytes in a row, with a concurrent reader.
// null_round_trip: an empty request and its reply. With the argument `fences`, no end is registered
// for membarrier(2), as if the kernel refused it.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "wire/channel.h"
#include "wire/wait.h"

namespace {

constexpr int kRounds = 400;
constexpr int kEnqueuesPerRound = 20'000;
constexpr int kRoundTripsPerRound = 1'000;
constexpr std::size_t kPayload = 128;
constexpr std::uint16_t kPlainCall = 1;

// Minimal ring: slots of one size, two counters, endless spinning, full trust in the peer.
struct BareRing {
  static constexpr std::uint64_t kSlots = wire::kRequestBytes / kPayload;
  alignas(128) std::atomic<std::uint64_t> tail{0};
  alignas(128) std::atomic<std::uint64_t> head{0};
  alignas(128) std::atomic<std::uint64_t> reply{0};
  alignas(128) std::byte slots[kSlots][kPayload];
};

class BareClient {
 public:
  explicit BareClient(BareRing& ring) : ring_(ring) {}

  void enqueue(const std::byte* payload) {
    while (tail_ - head_ == BareRing::kSlots) head_ = ring_.head.load(std::memory_order_acquire);
    std::memcpy(ring_.slots[tail_ % BareRing::kSlots], payload, kPayload);
    ring_.tail.store(++tail_, std::memory_order_release);
  }

  void roundTrip() {
    ring_.tail.store(++tail_, std::memory_order_release);
    while (ring_.reply.load(std::memory_order_acquire) != tail_) wire::pauseProcessor();
  }

 private:
  BareRing& ring_;
  std::uint64_t tail_ = 0, head_ = 0;
};

// Receives every payload. Reports when it has caught up, which answers a round trip.
[[noreturn]] void serveBare(BareRing& ring) {
  std::byte received[kPayload];
  std::uint64_t tail = 0;
  for (std::uint64_t head = 0;;) {
    while (tail == head) tail = ring.tail.load(std::memory_order_acquire);
    std::memcpy(received, ring.slots[head % BareRing::kSlots], kPayload);
    asm volatile("" : : "r"(received) : "memory");
    ring.head.store(++head, std::memory_order_release);
    if (head == tail) ring.reply.store(head, std::memory_order_release);
  }
}

class WireClient {
 public:
  explicit WireClient(wire::ClientChannel& channel) : channel_(channel) {}

  void enqueue(const std::byte* payload) {
    wire::Encoder encoder = channel_.begin(kPayload);
    if (std::byte* space = encoder.putSpace(kPayload - sizeof(std::uint64_t)))
      std::memcpy(space, payload, kPayload - sizeof(std::uint64_t));
    channel_.publish(encoder, kPlainCall, 0, 0);
  }

  void roundTrip() {
    channel_.publish(channel_.begin(0), kPlainCall, wire::kFrameWantsReply, 0);
    wire::ReplyHeader header;
    if (!channel_.awaitReply(header).ok()) _exit(1);
  }

 private:
  wire::ClientChannel& channel_;
};

[[noreturn]] void serveWire(int file) {
  const auto channel = wire::WorkerChannel::attach(file);
  wire::FrameHeader header;
  wire::Decoder payload;
  while (channel && channel->next(header, payload)) channel->reply(channel->replyEncoder(), 0, 0);
  _exit(channel ? 0 : 1);
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

struct Figures {
  std::vector<double> enqueue, roundTrip;  // nanoseconds, one per round

  template <class Client>
  void round(Client& client) {
    static const std::byte payload[kPayload] = {};
    client.roundTrip();  // the peer is awake and has finished the last round
    const std::uint64_t start = wire::monotonicNanoseconds();
    for (int i = 0; i < kEnqueuesPerRound; ++i) client.enqueue(payload);
    const std::uint64_t enqueued = wire::monotonicNanoseconds();
    client.roundTrip();
    const std::uint64_t drained = wire::monotonicNanoseconds();
    for (int i = 0; i < kRoundTripsPerRound; ++i) client.roundTrip();
    const std::uint64_t end = wire::monotonicNanoseconds();
    enqueue.push_back(static_cast<double>(enqueued - start) / kEnqueuesPerRound);
    roundTrip.push_back(static_cast<double>(end - drained) / kRoundTripsPerRound);
  }
};

void print(const char* what, const std::vector<double>& bare, const std::vector<double>& wire) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < bare.size(); ++i) ratios.push_back(wire[i] / bare[i]);
  std::printf("{\"name\": \"ring.bare.%s\", \"nanoseconds\": %.1f}\n", what, median(bare));
  std::printf("{\"name\": \"ring.wire.%s\", \"nanoseconds\": %.1f}\n", what, median(wire));
  std::printf("{\"name\": \"ring.ratio.%s\", \"ratio\": %.2f}\n", what, median(ratios));
}

template <class Serve>
pid_t start(Serve serve) {
  const pid_t child = fork();
  if (child == 0) serve();
  return child;
}

// The other server is stopped meanwhile, so that its spinning uses no processor.
template <class Client>
void roundWith(pid_t server, Figures& figures, Client& client) {
  kill(server, SIGCONT);
  figures.round(client);
  kill(server, SIGSTOP);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2 || std::strcmp(arguments[1], "fences") != 0)
    wire::registerForProcessBarriers();  // the servers are forked later
  void* shared =
      mmap(nullptr, sizeof(BareRing), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const auto channel = wire::ClientChannel::create();
  if (shared == MAP_FAILED || channel == nullptr)
    return std::perror("ring_bench: cannot make the rings"), 1;
  auto* ring = new (shared) BareRing;
  const pid_t bareServer = start([&] { serveBare(*ring); });
  const pid_t wireServer = start([&] { serveWire(channel->file()); });
  if (bareServer < 0 || wireServer < 0) return std::perror("ring_bench: cannot fork"), 1;
  kill(bareServer, SIGSTOP);
  kill(wireServer, SIGSTOP);

  BareClient bareClient(*ring);
  WireClient wireClient(*channel);
  Figures bare, wire;
  for (int i = 0; i < kRounds; ++i) {
    roundWith(bareServer, bare, bareClient);
    roundWith(wireServer, wire, wireClient);
  }
  print("enqueue_128", bare.enqueue, wire.enqueue);
  print("null_round_trip", bare.roundTrip, wire.roundTrip);
  for (const pid_t server : {bareServer, wireServer}) {
    kill(server, SIGKILL);
    waitpid(server, nullptr, 0);
  }
  return 0;
}
