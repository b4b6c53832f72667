// Compares the handle table with a plain map: after every step both have the same handles.
#include "wire/handle_table.h"

#include <fuzzer/FuzzedDataProvider.h>

#include <map>
#include <set>
#include <vector>

#include "test/fuzz/require.h"

namespace {

using wire::HandleKind;

struct Model {
  struct Entry {
    HandleKind kind;
    void* object;
    std::uint64_t parent;
  };
  std::map<std::uint64_t, Entry> live;
  std::set<std::uint64_t> ended;

  std::uint64_t handleOf(HandleKind kind, void* object) const {
    for (const auto& [handle, entry] : live) {
      if (entry.kind == kind && entry.object == object) return handle;
    }
    return 0;
  }

  void remove(std::uint64_t handle) {
    if (live.erase(handle) == 0) return;
    ended.insert(handle);
    std::vector<std::uint64_t> children;
    for (const auto& [child, entry] : live) {
      if (entry.parent == handle) children.push_back(child);
    }
    for (const std::uint64_t child : children) remove(child);
  }
};

struct Pair {
  wire::HandleTable table;
  Model model;

  std::uint64_t pick(FuzzedDataProvider& input) const {
    const auto choice = input.ConsumeIntegral<std::uint8_t>();
    if (choice < 16) return wire::primaryContextHandle(choice % 3);
    if (choice < 32) return input.ConsumeIntegral<std::uint64_t>();
    const std::size_t known = model.live.size() + model.ended.size();
    if (known == 0) return 0;
    const std::size_t at = choice % known;
    if (at < model.live.size()) return std::next(model.live.begin(), at)->first;
    return *std::next(model.ended.begin(), at - model.live.size());
  }

  void add(HandleKind kind, void* object, std::uint64_t parent) {
    const std::uint64_t known = object ? model.handleOf(kind, object) : 0;
    const std::uint64_t handle = table.add(kind, object, parent);
    const bool possible =
        object != nullptr && (known != 0 || parent == 0 || model.live.count(parent) != 0);
    REQUIRE((handle != 0) == possible && (known == 0 || handle == known));
    if (!possible || known != 0) return;
    REQUIRE(model.live.count(handle) == 0 && model.ended.count(handle) == 0 &&
            wire::handleKind(handle) == kind);
    model.live[handle] = {kind, object, parent};
  }

  void bind(int ordinal, void* object) {
    const std::uint64_t handle = wire::primaryContextHandle(ordinal);
    // An object has one handle: the worker never binds an object that it returned under another
    // handle.
    if (object != nullptr && model.handleOf(HandleKind::context, object) != 0) return;
    table.bind(handle, object);
    model.remove(handle);
    if (object == nullptr) return;
    model.ended.erase(handle);
    model.live[handle] = {HandleKind::context, object, 0};
  }

  void compare() const {
    REQUIRE(table.size() == model.live.size());
    for (const auto& [handle, entry] : model.live)
      REQUIRE(table.find(entry.kind, handle) == entry.object);
    for (const std::uint64_t handle : model.ended)
      REQUIRE(table.find(wire::handleKind(handle), handle) == nullptr);
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider input(data, size);
  Pair pair;
  while (input.remaining_bytes() > 0) {
    const auto kind = static_cast<HandleKind>(
        input.ConsumeIntegralInRange(1, static_cast<int>(HandleKind::count) - 1));
    void* object = reinterpret_cast<void*>(input.ConsumeIntegralInRange<std::uintptr_t>(0, 40) * 8);
    switch (input.ConsumeIntegralInRange(0, 3)) {
      case 0: pair.bind(input.ConsumeIntegralInRange(0, 2), object); break;
      case 1: {
        const std::uint64_t handle = pair.pick(input);
        pair.table.remove(handle);
        pair.model.remove(handle);
        break;
      }
      default: pair.add(kind, object, input.ConsumeBool() ? pair.pick(input) : 0);
    }
    pair.compare();
  }
  return 0;
}
