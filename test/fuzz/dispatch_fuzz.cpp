// Any frame of any call, with a driver that accepts everything and does nothing: no byte of a
// client may crash the worker's own code. At the end, prints how many calls have accepted a frame,
// and the names of the others.
#include <array>
#include <cstdio>
#include <cstring>

#include "test/fuzz/dispatch_fixture.h"

namespace {

/// Inputs before a session is replaced, because it keeps what frames create.
constexpr unsigned kInputsOfSession = 20'000;

struct Reached {
  std::array<bool, kCallCount + 1> accepted{};
  std::array<bool, kCallCount + 1> succeeded{};

  ~Reached() {
    std::size_t all = 0, successes = 0;
    for (std::uint16_t call = 1; call <= kCallCount; ++call) {
      all += accepted[call];
      successes += succeeded[call];
      if (!accepted[call])
        std::fprintf(stderr, "never accepted: %s\n", callName(call));
      else if (!succeeded[call])
        std::fprintf(stderr, "never succeeded: %s\n", callName(call));
    }
    std::fprintf(stderr, "%zu of %zu calls accepted a frame, %zu with success\n", all, kCallCount,
                 successes);
  }
};

fuzz::Fixture& fixture() {
  static auto one = std::make_unique<fuzz::Fixture>();
  static unsigned inputs = 0;
  if (++inputs % kInputsOfSession == 0) one = std::make_unique<fuzz::Fixture>();
  one->restore();
  return *one;
}

fuzz::Words wordsOf(const std::uint8_t* data, std::size_t size) {
  fuzz::Words words((size - 2) / 8);
  if (!words.empty()) std::memcpy(words.data(), data + 2, words.size() * 8);
  return words;
}

std::uint16_t callOf(const std::uint8_t* data) {
  std::uint16_t call = 0;
  std::memcpy(&call, data, sizeof call);
  return call;
}

}  // namespace

/// A real driver would own and return objects of some calls (host functions). This one drops them.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }

/// A frame may crash while the mutator tries it, and then libFuzzer does not know it.
extern "C" void __asan_on_error() {
  const auto [call, words] = fuzz::Fixture::current();
  if (words == nullptr) return;
  std::fprintf(stderr, "the frame of %s:", callName(call));
  for (const std::uint64_t word : *words)
    std::fprintf(stderr, " %llx", static_cast<unsigned long long>(word));
  std::fprintf(stderr, "\n");
}

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Reached reached;
  if (size < 2) return 0;
  const std::uint16_t call = callOf(data);
  const fuzz::Outcome outcome = fixture().dispatch(call, wordsOf(data, size));
  if (call == 0 || call > kCallCount || !outcome.accepted) return 0;
  reached.accepted[call] = true;
  if (outcome.status == CUDA_SUCCESS) reached.succeeded[call] = true;
  return 0;
}

/// Half of the frames are random bytes. The others are known to parse, and name objects that exist.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  fuzz::Random random(seed);
  if (size < 2 || random() % 2 == 0) return LLVMFuzzerMutate(data, size, most);
  static std::uint16_t next = 0;
  std::uint16_t call = callOf(data);
  fuzz::Words words = wordsOf(data, size);
  fuzz::Fixture& known = fixture();
  if (random() % 4 == 0 || call > kCallCount) {
    next = next % kCallCount + 1;
    call = next;
    words = fuzz::example(known, call);
  }
  fuzz::complete(known, call, words, random);
  if (random() % 4 != 0) fuzz::insertKnown(known, words, random);
  fuzz::complete(known, call, words, random);
  words.resize(std::min(words.size(), (most - 2) / 8));
  std::memcpy(data, &call, sizeof call);
  if (!words.empty()) std::memcpy(data + 2, words.data(), words.size() * 8);
  return 2 + words.size() * 8;
}
