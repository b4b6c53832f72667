// Handles have one kind, are inert once removed, and end with their parent and context. No other
// number is found.
#include "wire/handle_table.h"

#include <doctest/doctest.h>

#include <atomic>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace wire {
namespace {

void* object(std::uint64_t number) { return reinterpret_cast<void*>(number * 16); }

TEST_CASE("an object is found by its handle and kind") {
  HandleTable table;
  const std::uint64_t stream = table.add(HandleKind::stream, object(1));
  CHECK(table.find(HandleKind::stream, stream) == object(1));
  CHECK(table.find(HandleKind::event, stream) == nullptr);
  CHECK(handleKind(stream) == HandleKind::stream);
  CHECK(table.add(HandleKind::stream, object(1)) == stream);
  const std::uint64_t event = table.add(HandleKind::event, object(1));
  CHECK(event != stream);
  CHECK(table.find(HandleKind::event, event) == object(1));
  CHECK(table.size() == 2);
  CHECK(table.add(HandleKind::event, nullptr) == 0);
}

TEST_CASE("the shared count follows the number of live handles") {
  std::atomic<std::uint32_t> shown{0};
  HandleTable table(&shown);
  const std::uint64_t first = table.add(HandleKind::stream, object(1));
  CHECK(shown == 1);
  table.bind(primaryContextHandle(0), object(2));
  CHECK(shown == 2);
  CHECK(table.add(HandleKind::stream, object(3)) != 0);
  CHECK(shown == 3);
  table.remove(first);
  table.bind(primaryContextHandle(0), nullptr);
  CHECK(shown == 1);
  CHECK(table.size() == 1);
}

TEST_CASE("a handle is neither a small number nor an address of the host") {
  HandleTable table;
  for (int kind = 1; kind < static_cast<int>(HandleKind::count); ++kind) {
    const std::uint64_t handle = table.add(static_cast<HandleKind>(kind), object(1));
    CHECK(static_cast<std::int64_t>(handle) > 2);
    CHECK(handle % 16 == 0);
    CHECK((handle >> 47) != 0);
    CHECK(static_cast<int>(handleKind(handle)) == kind);
  }
  for (const std::uint64_t handle : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2},
                                     ~std::uint64_t{0}, std::uint64_t{0x7fff'1234'5670}}) {
    CHECK(handleKind(handle) == HandleKind::none);
    CHECK(table.find(HandleKind::none, handle) == nullptr);
  }
}

TEST_CASE("a removed handle is never found or given again") {
  HandleTable table;
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t handle = table.add(HandleKind::event, object(1));
    CHECK(seen.insert(handle).second);
    table.remove(handle);
    table.remove(handle);
    CHECK(table.find(HandleKind::event, handle) == nullptr);
    CHECK(table.size() == 0);
  }
}

TEST_CASE("the children of a handle are removed with it") {
  HandleTable table;
  const std::uint64_t module = table.add(HandleKind::module, object(1));
  const std::uint64_t library = table.add(HandleKind::library, object(2), module);
  std::vector<std::uint64_t> functions;
  for (std::uint64_t i = 10; i < 20; ++i)
    functions.push_back(table.add(HandleKind::function, object(i), i % 2 ? module : library));
  for (const int gone : {0, 5, 9}) table.remove(functions[gone]);
  const std::uint64_t other = table.add(HandleKind::function, object(30));
  table.remove(module);
  for (const std::uint64_t function : functions)
    CHECK(table.find(HandleKind::function, function) == nullptr);
  CHECK(table.find(HandleKind::library, library) == nullptr);
  CHECK(table.find(HandleKind::function, other) == object(30));
  CHECK(table.size() == 1);
  CHECK(table.add(HandleKind::function, object(40), module) == 0);
}

TEST_CASE("what was made in a context is removed with it") {
  HandleTable table;
  const std::uint64_t primary = primaryContextHandle(0);
  table.bind(primary, object(1));
  const std::uint64_t own = table.add(HandleKind::context, object(2));
  CHECK(table.handleOf(HandleKind::context, object(2)) == own);
  CHECK(table.handleOf(HandleKind::context, object(1)) == primary);
  CHECK(table.handleOf(HandleKind::stream, object(2)) == 0);
  CHECK(table.handleOf(HandleKind::context, object(3)) == 0);
  const std::uint64_t library = table.add(HandleKind::library, object(3));
  for (const std::uint64_t context : {primary, own, primary}) {
    const std::uint64_t stream = table.add(HandleKind::stream, object(4), 0, context);
    const std::uint64_t module = table.add(HandleKind::module, object(5), library, context);
    const std::uint64_t function = table.add(HandleKind::function, object(6), module);
    const std::uint64_t other =
        table.add(HandleKind::event, object(7), 0, context == own ? primary : own);
    if (context == own) table.remove(own);
    if (context == primary) table.bind(primary, nullptr);
    CHECK(table.find(HandleKind::stream, stream) == nullptr);
    CHECK(table.find(HandleKind::module, module) == nullptr);
    CHECK(table.find(HandleKind::function, function) == nullptr);
    CHECK(table.find(HandleKind::event, other) == object(7));
    table.remove(other);
    table.bind(primary, object(1));
  }
  // It also ends with its parent. A slot that is used again belongs to no context.
  table.add(HandleKind::module, object(5), library, primary);
  table.remove(library);
  const std::uint64_t event = table.add(HandleKind::event, object(8));
  table.bind(primary, nullptr);
  CHECK(table.find(HandleKind::event, event) == object(8));
  CHECK(table.size() == 1);
}

TEST_CASE("the handle of an object shows which context it ends with") {
  HandleTable table;
  table.bind(primaryContextHandle(0), object(1));
  const std::uint64_t primary = primaryContextHandle(0);
  const std::uint64_t created = table.add(HandleKind::context, object(2));
  CHECK(contextBits(primary) != 0);
  CHECK(contextBits(created) != contextBits(primary));
  CHECK(contextBits(primaryContextHandle(1)) != contextBits(primary));
  const std::uint64_t ofPrimary = table.add(HandleKind::event, object(3), 0, primary);
  const std::uint64_t ofCreated = table.add(HandleKind::event, object(4), 0, created);
  CHECK(contextBits(ofPrimary) == contextBits(primary));
  CHECK(contextBits(ofCreated) == contextBits(created));
  CHECK(contextBits(table.add(HandleKind::graph, object(5))) == 0);
  table.remove(created);
  CHECK(contextBits(table.add(HandleKind::context, object(6))) != contextBits(created));
}

TEST_CASE("a primary context has the same handle each time it is bound") {
  HandleTable table;
  const std::uint64_t primary = primaryContextHandle(3);
  CHECK(primary != 0);
  CHECK(primary != primaryContextHandle(2));
  CHECK(handleKind(primary) == HandleKind::context);
  CHECK(primaryContextHandle(-1) == 0);
  CHECK(primaryContextHandle(64) == 0);
  CHECK(table.find(HandleKind::context, primary) == nullptr);
  table.bind(primary, object(1));
  CHECK(table.find(HandleKind::context, primary) == object(1));
  CHECK(table.add(HandleKind::context, object(1)) == primary);
  const std::uint64_t stream = table.add(HandleKind::stream, object(2), primary);
  table.bind(primary, object(1));
  CHECK(table.find(HandleKind::stream, stream) == object(2));
  table.bind(primary, nullptr);
  CHECK(table.find(HandleKind::context, primary) == nullptr);
  CHECK(table.find(HandleKind::stream, stream) == nullptr);
  CHECK(table.size() == 0);
  table.bind(primary, object(3));
  CHECK(table.find(HandleKind::context, primary) == object(3));
  table.bind(table.add(HandleKind::context, object(4)), nullptr);
  table.bind(~std::uint64_t{0}, object(5));
  CHECK(table.size() == 2);
}

TEST_CASE("a number that the table did not give is no handle") {
  HandleTable table;
  const std::uint64_t handle =
      table.add(HandleKind::kernel, object(1), table.add(HandleKind::library, object(2)));
  for (int bit = 0; bit < 64; ++bit)
    CHECK(table.find(HandleKind::kernel, handle ^ std::uint64_t{1} << bit) == nullptr);
  std::mt19937_64 random(1);
  unsigned found = 0;
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t number = random();
    for (int kind = 0; kind < static_cast<int>(HandleKind::count); ++kind)
      found += table.find(static_cast<HandleKind>(kind), number) != nullptr;
    table.remove(number);
  }
  CHECK(found == 0);
  CHECK(table.size() == 2);
}

TEST_CASE("the table grows and keeps all handles") {
  HandleTable table;
  std::vector<std::uint64_t> handles;
  for (std::uint64_t i = 1; i <= 10'000; ++i)
    handles.push_back(table.add(HandleKind::graphNode, object(i)));
  for (std::uint64_t i = 1; i <= 10'000; ++i)
    CHECK(table.find(HandleKind::graphNode, handles[i - 1]) == object(i));
}

// The objects of a writer have numbers of their own, so a reader notices the object of another
// handle.
TEST_CASE("a reader without a lock never finds another handle's object") {
  constexpr std::uint64_t kWriters = 2;
  HandleTable table;
  std::atomic<std::uint64_t> published[kWriters]{};
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (std::uint64_t writer = 0; writer < kWriters; ++writer) {
    threads.emplace_back([&, writer] {
      for (std::uint64_t i = 1; i <= 20'000; ++i) {
        const std::uint64_t handle = table.add(HandleKind::event, object(i * kWriters + writer));
        published[writer].store(handle);
        table.remove(handle);
      }
      if (writer == 0) done.store(true);
    });
  }
  std::uint64_t wrong = 0;
  while (!done.load()) {
    for (std::uint64_t writer = 0; writer < kWriters; ++writer) {
      const auto found =
          reinterpret_cast<std::uint64_t>(table.find(HandleKind::event, published[writer].load()));
      wrong += found != 0 && found / 16 % kWriters != writer;
    }
  }
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(table.size() == 0);
}

}  // namespace
}  // namespace wire
