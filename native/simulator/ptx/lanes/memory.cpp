// Loads, stores, address arithmetic between state spaces.
#include "native/simulator/ptx/lanes/memory.h"

#include "native/simulator/ptx/lanes/access.h"

namespace simulator::ptx::SIMULATOR_LANES {
namespace {

/// Whether the lanes of each half of the warp read places `step` bytes apart. That covers one place
/// for all lanes, 32 neighbours, and two rows of a tile that is 16 wide.
template <u64 step>
bool regular(const u64* address) {
  const u64 low = address[0], high = address[16];
  u64 different = 0;
  FOR_LANES(i) different |= address[i] ^ ((i < 16 ? low : high) + u64(i & 15) * step);
  return different == 0;
}

/// The elements of lanes with `regular<step>` addresses.
template <class M, u64 step>
[[gnu::always_inline]] inline void readHalves(M* element, const u64* address) {
  if constexpr (step) {
    readNeighbours<16 * sizeof(M)>(element, address[0]);
    readNeighbours<16 * sizeof(M)>(element + 16, address[16]);
  } else {
    M low;
    readOnce<sizeof low>(&low, address[0]);
    M high = low;  // lanes that read one place read it once
    if (address[16] != address[0]) readOnce<sizeof high>(&high, address[16]);
    FOR_LANES(i) element[i] = i < 16 ? low : high;
  }
}

/// Loads one element for each lane, if the addresses are regular.
template <class M, class R, u64 step>
[[gnu::always_inline]] inline bool loadRegular(Warp& w, const Operation* op, u32 mask,
                                               const u64* address) {
  if (!regular<step>(address)) return false;
  if constexpr (sizeof(M) == sizeof(R)) {
    if (mask == kAllLanes) {
      readHalves<M, step>(w.at<M>(op->slot[0]), address);
      return true;
    }
  }
  alignas(64) M element[32];
  readHalves<M, step>(element, address);
  assign<R>(w, op->slot[0], mask, [&](int i) { return R(element[i]); });
  return true;
}

/// All lanes read one place, once: a coefficient.
template <class M, class R, unsigned count>
[[gnu::always_inline]] inline void loadForAll(Warp& w, const Operation* op, u32 mask, u64 address) {
  M element[count];
  readOnce<sizeof element>(element, address);
  for (unsigned k = 0; k < count; ++k) {
    const R value = R(element[k]);
    assign<R>(w, op->slot[k], mask, [=](int) { return value; });
  }
}

/// M: type in memory; R: register. `count` elements of each lane are one access.
template <class M, class R, unsigned count>
[[gnu::always_inline]] inline void loadLanes(Warp& w, const Operation* op, u32 mask,
                                             const u64* address) {
  alignas(64) M element[32 * count];
  for (int i = 0; i < 32; ++i) readOnce<sizeof(M) * count>(element + i * count, address[i]);
  for (unsigned k = 0; k < count; ++k) {
    assign<R>(w, op->slot[k], mask, [&](int i) { return R(element[i * count + k]); });
  }
}

template <class M, class R, unsigned count>
[[gnu::always_inline]] inline void storeLanes(Warp& w, const Operation* op, u32 mask,
                                              const u64* address) {
  alignas(64) M element[32 * count];
  for (unsigned k = 0; k < count; ++k) {
    const R* value = w.at<R>(op->slot[k]);
    FOR_LANES(i) element[i * count + k] = M(value[i]);
  }
  for (u32 left = mask; left; left &= left - 1) {
    const int i = __builtin_ctz(left);
    writeOnce<sizeof(M) * count>(address[i], element + i * count);
  }
}

/// Hardware goes on with other warps while a load is under way. So here: a value that warps read
/// behind a barrier has been read by all of them before one of them can use it.
template <Space space, class M, class R>
const Operation* load(Warp& w, const Operation* op, u32 mask) {
  const unsigned count = op->width;
  if (space != Space::Local && space != Space::Param) w.turn = 0;
  if (op->flags & Operation::kSpinning) w.spin();
  alignas(64) u64 address[32];
  if (!resolve<space, Use::read>(w, op, mask, sizeof(M) * count, address)) return nullptr;
  const u64 step = address[1] - address[0];
  if (count == 1) {
    if (step == 0 && loadRegular<M, R, 0>(w, op, mask, address)) return op + 1;
    if constexpr (sizeof(M) <= 8) {
      if (step == sizeof(M) && loadRegular<M, R, sizeof(M)>(w, op, mask, address)) return op + 1;
    }
  } else if (address[0] == address[31] && regular<0>(address)) {
    if (count == 2) loadForAll<M, R, 2>(w, op, mask, address[0]);
    if (count == 4) loadForAll<M, R, 4>(w, op, mask, address[0]);
    return op + 1;
  }
  if (count == 2) {
    loadLanes<M, R, 2>(w, op, mask, address);
  } else if (count == 4) {
    loadLanes<M, R, 4>(w, op, mask, address);
  } else {
    loadLanes<M, R, 1>(w, op, mask, address);
  }
  return op + 1;
}

template <Space space, class M, class R>
const Operation* store(Warp& w, const Operation* op, u32 mask) {
  const unsigned count = op->width;
  alignas(64) u64 address[32];
  if (!resolve<space, Use::write>(w, op, mask, sizeof(M) * count, address)) return nullptr;
  if constexpr (sizeof(M) == sizeof(R) && sizeof(M) <= 8) {
    if (count == 1 && mask == kAllLanes && regular<sizeof(M)>(address)) {
      const M* value = w.at<M>(op->slot[0]);
      writeNeighbours<16 * sizeof(M)>(address[0], value);
      writeNeighbours<16 * sizeof(M)>(address[16], value + 16);
      return op + 1;
    }
  }
  if (count == 2) {
    storeLanes<M, R, 2>(w, op, mask, address);
  } else if (count == 4) {
    storeLanes<M, R, 4>(w, op, mask, address);
  } else {
    storeLanes<M, R, 1>(w, op, mask, address);
  }
  return op + 1;
}

/// ld.param of a kernel: the same value for every lane.
template <class M, class R>
const Operation* loadParameter(Warp& w, const Operation* op, u32 mask) {
  for (unsigned k = 0; k < op->width; ++k) {
    M value;
    __builtin_memcpy(&value, w.parameters + op->immediate + k * sizeof(M), sizeof value);
    assign<R>(w, op->slot[k], mask, [=](int) { return R(value); });
  }
  return op + 1;
}

const Operation* localAddress(Warp& w, const Operation* op, u32 mask) {
  const u64 address = w.frame->localBase + u64(op->immediate);
  if (op->width == 4)
    assign<u32>(w, op->slot[0], mask, [=](int) { return u32(address); });
  else
    assign<u64>(w, op->slot[0], mask, [=](int) { return address; });
  return op + 1;
}

/// cvta and cvta.to for the windows of shared, local and parameter memory; `immediate` is the
/// window.
template <class D, class S>
const Operation* toGeneric(Warp& w, const Operation* op, u32 mask) {
  const S* a = w.at<S>(op->slot[1]);
  const u64 window = u64(op->immediate);
  assign<D>(w, op->slot[0], mask, [=](int i) { return D((a[i] & kWindowOffset) | window); });
  return op + 1;
}
template <class D, class S>
const Operation* fromGeneric(Warp& w, const Operation* op, u32 mask) {
  const S* a = w.at<S>(op->slot[1]);
  assign<D>(w, op->slot[0], mask, [=](int i) { return D(a[i] & kWindowOffset); });
  return op + 1;
}
/// The block of the cluster in whose shared memory an address is.
u32 rankOf(const Warp& w, u64 address) {
  const u32 named = u32((address & kWindowOffset) >> kRankShift);
  return named ? named - 1 : w.block->rank;
}
const Operation* isSpace(Warp& w, const Operation* op, u32 mask) {
  const u64* a = w.at<u64>(op->slot[1]);
  u32 bits = 0;
  for (int i = 0; i < 32; ++i) {
    const bool own = !op->width || rankOf(w, a[i]) == w.block->rank;
    bits |= u32(own && a[i] >> kWindowShift == u64(op->immediate) >> kWindowShift) << i;
  }
  w.assignPredicate(op->slot[0], bits, mask);
  return op + 1;
}

/// mapa: the address of the same variable in another block of the cluster.
template <class T>
const Operation* mapRank(Warp& w, const Operation* op, u32 mask) {
  const T* a = w.at<T>(op->slot[1]);
  const u32* rank = w.at<u32>(op->slot[2]);
  assign<T>(w, op->slot[0], mask, [=](int i) {
    const u64 offset = a[i] & ((1ull << kRankShift) - 1);
    return T((u64(a[i]) & ~kWindowOffset) | u64(rank[i] + 1) << kRankShift | offset);
  });
  return op + 1;
}

template <class T>
const Operation* getRank(Warp& w, const Operation* op, u32 mask) {
  const T* a = w.at<T>(op->slot[1]);
  assign<u32>(w, op->slot[0], mask, [&](int i) { return rankOf(w, a[i]); });
  return op + 1;
}

/// Copies `taken` bytes and fills up with zeros.
template <unsigned bytes>
[[gnu::always_inline]] inline void copyPadded(u64 to, u64 from, u32 taken) {
  alignas(16) u8 unit[bytes] = {};
  if (taken >= bytes) {
    readOnce<bytes>(unit, from);
  } else if (taken) {
    std::memcpy(unit, reinterpret_cast<const void*>(from), taken);
  }
  writeOnce<bytes>(to, unit);
}

/// cp.async and its like happen at once: slot 0 the source's address, slot 4 the destination's,
/// slot 1 the bytes to take.
const Operation* copyAsync(Warp& w, const Operation* op, u32 mask) {
  Operation source = *op;
  source.slot[Operation::kAddress] = op->slot[0];
  source.immediate = s64(s32(op->target));
  source.flags = Operation::kHasAddress | Operation::kWideAddress;
  alignas(64) u64 from[32], to[32];
  if (!resolve<Space::Shared, Use::write>(w, op, mask, op->width, to)) return nullptr;
  const u32* taken = op->uses & 2 ? w.at<u32>(op->slot[1]) : nullptr;
  u32 reading = mask;
  for (int i = 0; taken && i < 32; ++i) reading &= taken[i] ? ~0u : ~(1u << i);
  if (reading && !resolve<Space::Generic, Use::read>(w, &source, reading, op->width, from))
    return nullptr;
  for (u32 left = mask; left; left &= left - 1) {
    const int i = __builtin_ctz(left);
    const u32 bytes = taken ? taken[i] : op->width;
    if (op->width == 16)
      copyPadded<16>(to[i], from[i], bytes);
    else if (op->width == 8)
      copyPadded<8>(to[i], from[i], bytes);
    else
      copyPadded<4>(to[i], from[i], bytes);
  }
  return op + 1;
}

struct Loads {
  template <Space s, class M, class R>
  static Handler pick() {
    return load<s, M, R>;
  }
};
struct Stores {
  template <Space s, class M, class R>
  static Handler pick() {
    return store<s, M, R>;
  }
};
struct Parameters {
  template <Space s, class M, class R>
  static Handler pick() {
    return loadParameter<M, R>;
  }
};

template <class K, Space s, class M>
Handler registers(const Form& form) {
  if constexpr (sizeof(M) == 16)
    return form.sourceBytes == 16 ? K::template pick<s, M, M>() : nullptr;
  switch (form.sourceBytes) {
    case 2: return K::template pick<s, M, u16>();
    case 4: return K::template pick<s, M, u32>();
    case 8: return K::template pick<s, M, u64>();
    default: return nullptr;
  }
}
template <class K, Space s>
Handler types(const Form& form) {
  if (isSigned(form.type)) {
    switch (bytesOf(form.type)) {
      case 1: return registers<K, s, s8>(form);
      case 2: return registers<K, s, s16>(form);
      case 4: return registers<K, s, s32>(form);
      default: return registers<K, s, s64>(form);
    }
  }
  switch (bytesOf(form.type)) {
    case 1: return registers<K, s, u8>(form);
    case 2: return registers<K, s, u16>(form);
    case 4: return registers<K, s, u32>(form);
    case 8: return registers<K, s, u64>(form);
    case 16: return registers<K, s, uint128>(form);
    default: return nullptr;
  }
}
template <class K>
Handler spaces(const Form& form) {
  switch (form.space) {
    case Space::Global:
    case Space::Const: return types<K, Space::Global>(form);
    case Space::Shared: return types<K, Space::Shared>(form);
    case Space::Local: return types<K, Space::Local>(form);
    case Space::Param: return types<K, Space::Param>(form);
    default: return types<K, Space::Generic>(form);
  }
}

Handler windows(const Form& form) {
  const bool wide = bytesOf(form.type) == 8, fromWide = form.sourceBytes == 8;
  if (form.op == Op::ToGeneric)
    return wide ? (fromWide ? toGeneric<u64, u64> : toGeneric<u64, u32>) : toGeneric<u32, u32>;
  return wide ? fromGeneric<u64, u64> : fromWide ? fromGeneric<u32, u64> : fromGeneric<u32, u32>;
}

}  // namespace

Handler selectMemory(const Form& form) {
  switch (form.op) {
    case Op::Load: return spaces<Loads>(form);
    case Op::Store: return spaces<Stores>(form);
    case Op::LoadParameter: return types<Parameters, Space::Param>(form);
    case Op::LocalAddress: return localAddress;
    case Op::ToGeneric:
    case Op::FromGeneric: return windows(form);
    case Op::IsSpace: return isSpace;
    case Op::MapRank: return bytesOf(form.type) == 8 ? mapRank<u64> : mapRank<u32>;
    case Op::GetRank: return bytesOf(form.type) == 8 ? getRank<u64> : getRank<u32>;
    case Op::CopyAsync: return copyAsync;
    default: return nullptr;
  }
}

}  // namespace simulator::ptx::SIMULATOR_LANES
