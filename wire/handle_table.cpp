#include "wire/handle_table.h"

#include <functional>

#include "wire/barrier.h"

namespace wire {

namespace {

// Bits of a handle, from the highest: 0, 1, kind (6), context (8), generation (22), index (22),
// 0000. It is not a canonical address.
constexpr std::uint64_t kMark = std::uint64_t{1} << 62;
constexpr int kKindShift = 56, kContextShift = 48, kGenerationShift = 26, kIndexShift = 4;
constexpr std::uint32_t kKindMask = 0x3f, kGenerationMask = 0x3f'ffff, kIndexMask = 0x3f'ffff;
constexpr std::uint32_t kPrimaryContexts = 64;
static_assert(static_cast<std::uint32_t>(HandleKind::count) <= kKindMask);

/// `context`: the handle of the context that it ends with; 0 for none.
constexpr std::uint64_t makeHandle(HandleKind kind, std::uint32_t generation, std::uint32_t index,
                                   std::uint64_t context) {
  const std::uint64_t bits = kind == HandleKind::context ? 1 + (generation + index) % 255
                                                         : context >> kContextShift & 0xff;
  return kMark | std::uint64_t{static_cast<std::uint8_t>(kind)} << kKindShift |
         bits << kContextShift | std::uint64_t{generation} << kGenerationShift |
         std::uint64_t{index} << kIndexShift;
}

std::uint32_t indexOf(std::uint64_t handle) {
  return static_cast<std::uint32_t>(handle >> kIndexShift) & kIndexMask;
}

}  // namespace

HandleKind handleKind(std::uint64_t handle) {
  const std::uint32_t kind = static_cast<std::uint32_t>(handle >> kKindShift) & kKindMask;
  const bool formed =
      (handle & kMark) != 0 && handle >> 63 == 0 && (handle & ((1 << kIndexShift) - 1)) == 0;
  return formed && kind < static_cast<std::uint32_t>(HandleKind::count)
             ? static_cast<HandleKind>(kind)
             : HandleKind::none;
}

std::uint8_t contextBits(std::uint64_t handle) {
  return static_cast<std::uint8_t>(handle >> kContextShift);
}

std::uint64_t primaryContextHandle(int ordinal) {
  if (ordinal < 0 || ordinal >= static_cast<int>(kPrimaryContexts)) return 0;
  return makeHandle(HandleKind::context, 1, static_cast<std::uint32_t>(ordinal), 0);
}

std::size_t HandleTable::KeyHash::operator()(const Key& key) const {
  return std::hash<void*>()(key.object) * 0x9e37'79b9'7f4a'7c15 +
         static_cast<std::size_t>(key.kind);
}

HandleTable::HandleTable(std::atomic<std::uint32_t>* shown)
    : shown_(shown != nullptr ? *shown : size_) {}

HandleTable::~HandleTable() {
  for (auto& chunk : chunks_) delete[] barrier::glance(chunk);
}

void* HandleTable::find(HandleKind kind, std::uint64_t handle) const {
  if (handleKind(handle) != kind) return nullptr;
  const Slot* slot = slotOf(handle);
  if (slot == nullptr || barrier::observe(slot->handle) != handle) return nullptr;
  void* object = barrier::observe(slot->object);
  // vacate() clears the handle before occupy() sets another object. A thread that reads the new
  // object also sees that the handle is gone.
  return barrier::glance(slot->handle) == handle ? object : nullptr;
}

std::uint64_t HandleTable::add(HandleKind kind, void* object, std::uint64_t parent,
                               std::uint64_t context) {
  std::lock_guard lock(mutex_);
  if (object == nullptr) return 0;
  if (const auto known = handles_.find({object, kind}); known != handles_.end())
    return known->second;
  const Slot* above = parent != 0 ? slotOf(parent) : nullptr;
  if (parent != 0 && (above == nullptr || barrier::glance(above->handle) != parent)) return 0;
  const std::uint32_t index = freeSlot();
  if (index == kNone) return 0;
  const std::uint64_t handle = makeHandle(kind, ++slot(index).generation, index, context);
  occupy(index, handle, object);
  slot(index).context = context;
  if (above != nullptr) link(index, indexOf(parent));
  return handle;
}

std::uint64_t HandleTable::handleOf(HandleKind kind, void* object) const {
  std::lock_guard lock(mutex_);
  const auto known = handles_.find({object, kind});
  return known != handles_.end() ? known->second : 0;
}

std::vector<void*> HandleTable::objects(HandleKind kind) const {
  std::lock_guard lock(mutex_);
  std::vector<void*> found;
  for (const auto& [key, handle] : handles_) {
    if (key.kind == kind) found.push_back(key.object);
  }
  return found;
}

std::uint64_t HandleTable::rootOf(std::uint64_t handle) const {
  std::lock_guard lock(mutex_);
  const Slot* found = slotOf(handle);
  if (handle == 0 || found == nullptr || barrier::glance(found->handle) != handle) return 0;
  while (found->parent != kNone) found = &slot(found->parent);
  return barrier::glance(found->handle);
}

std::uint64_t HandleTable::parentOf(std::uint64_t handle) const {
  std::lock_guard lock(mutex_);
  const Slot* found = slotOf(handle);
  if (handle == 0 || found == nullptr || barrier::glance(found->handle) != handle) return 0;
  return found->parent == kNone ? 0 : barrier::glance(slot(found->parent).handle);
}

bool HandleTable::isPartOf(std::uint64_t handle, std::uint64_t whole) const {
  while (handle != 0 && handle != whole) handle = parentOf(handle);
  return handle != 0;
}

void HandleTable::bind(std::uint64_t handle, void* object) {
  std::lock_guard lock(mutex_);
  const std::uint32_t index = indexOf(handle);
  if (index >= kPrimaryContexts || handle != primaryContextHandle(static_cast<int>(index))) return;
  reachSlot(index);
  const bool bound = barrier::glance(slot(index).handle) != 0;
  if (bound && barrier::glance(slot(index).object) == object) return;
  if (bound) end(index);
  if (object != nullptr) occupy(index, handle, object);
}

void HandleTable::remove(std::uint64_t handle) {
  std::lock_guard lock(mutex_);
  const Slot* slot = slotOf(handle);
  if (handle != 0 && slot != nullptr && barrier::glance(slot->handle) == handle)
    end(indexOf(handle));
}

bool HandleTable::endsWith(void* object, std::uint64_t context) const {
  std::lock_guard lock(mutex_);
  for (const HandleKind kind : {HandleKind::stream, HandleKind::event}) {
    const auto known = handles_.find({object, kind});
    if (known != handles_.end() && slotOf(known->second)->context == context) return true;
  }
  return false;
}

std::size_t HandleTable::size() const { return barrier::glance(shown_); }

HandleTable::Slot* HandleTable::slotOf(std::uint64_t handle) const {
  const std::uint32_t index = indexOf(handle);
  if (index >= kChunks * kChunkSlots) return nullptr;
  Slot* chunk = barrier::observe(chunks_[index / kChunkSlots]);
  return chunk != nullptr ? chunk + index % kChunkSlots : nullptr;
}

HandleTable::Slot& HandleTable::slot(std::uint32_t index) const {
  return barrier::glance(chunks_[index / kChunkSlots])[index % kChunkSlots];
}

std::uint32_t HandleTable::freeSlot() {
  if (!free_.empty()) {
    const std::uint32_t index = free_.back();
    free_.pop_back();
    return index;
  }
  if (used_ < kPrimaryContexts) used_ = kPrimaryContexts;
  if (used_ == kChunks * kChunkSlots) return kNone;
  reachSlot(used_);
  return used_++;
}

void HandleTable::reachSlot(std::uint32_t index) {
  auto& chunk = chunks_[index / kChunkSlots];
  if (barrier::glance(chunk) == nullptr) barrier::publish(chunk, new Slot[kChunkSlots]);
}

void HandleTable::occupy(std::uint32_t index, std::uint64_t handle, void* object) {
  Slot& slot = this->slot(index);
  barrier::publish(slot.object, object);
  barrier::publish(slot.handle, handle);
  handles_.insert_or_assign(Key{object, handleKind(handle)}, handle);
  show();
}

void HandleTable::show() { barrier::note(shown_, static_cast<std::uint32_t>(handles_.size())); }

void HandleTable::link(std::uint32_t index, std::uint32_t parent) {
  Slot& child = slot(index);
  Slot& above = slot(parent);
  child.parent = parent;
  child.nextSibling = above.firstChild;
  if (above.firstChild != kNone) slot(above.firstChild).previousSibling = index;
  above.firstChild = index;
}

void HandleTable::unlink(std::uint32_t index) {
  Slot& child = slot(index);
  if (child.previousSibling != kNone) {
    slot(child.previousSibling).nextSibling = child.nextSibling;
  } else if (child.parent != kNone) {
    slot(child.parent).firstChild = child.nextSibling;
  }
  if (child.nextSibling != kNone) slot(child.nextSibling).previousSibling = child.previousSibling;
  child.parent = child.nextSibling = child.previousSibling = kNone;
}

void HandleTable::vacate(std::uint32_t index) {
  Slot& slot = this->slot(index);
  const std::uint64_t handle = barrier::glance(slot.handle);
  const auto known = handles_.find({barrier::glance(slot.object), handleKind(handle)});
  if (known != handles_.end() && known->second == handle) handles_.erase(known);
  show();
  barrier::publish<std::uint64_t>(slot.handle, 0);
  slot.context = 0;
  // A slot that has used all generations is not reused, because an old handle must not become valid
  // again.
  if (index >= kPrimaryContexts && slot.generation < kGenerationMask) free_.push_back(index);
}

/// For a context, checks every slot: contexts end rarely.
void HandleTable::end(std::uint32_t index) {
  const std::uint64_t handle = barrier::glance(slot(index).handle);
  endTree(index);
  for (std::uint32_t at = 0; handleKind(handle) == HandleKind::context && at < used_; ++at) {
    if (slot(at).context == handle) endTree(at);
  }
}

void HandleTable::endTree(std::uint32_t index) {
  for (std::uint32_t at = index;;) {
    while (slot(at).firstChild != kNone) at = slot(at).firstChild;
    const std::uint32_t parent = slot(at).parent;
    unlink(at);
    vacate(at);
    if (at == index) return;
    at = parent;
  }
}

}  // namespace wire
