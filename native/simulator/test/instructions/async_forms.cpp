// cp.async, mbarrier, st.async, red.async, and words about caches.
#include <algorithm>

#include "native/simulator/test/instructions/memory_shared.h"

namespace instructions {
namespace {

constexpr u64 kFill = 0x1122334455667788;

/// Each lane by itself, without a guarded copy: for bodies with labels, and with cache policies,
/// which have to be the same in all lanes (else an H200 reports an illegal instruction).
WarpReference eachLane(const Reference& reference) {
  return [=](const u64(*s)[4], u64(*d)[2]) {
    for (unsigned lane = 0; lane < 32; ++lane) reference(s[lane], d[lane]);
    return 0xffffffffu;
  };
}

/// Copies `bytes` bytes from %from, of which `taken` are read and the others are zero.
void addCopy(Forms& forms, const std::string& name, unsigned bytes, const std::string& operands,
             unsigned taken) {
  const std::string body =
      std::string(kShared) +
      "mov.b64 %x0, 0x1122334455667788; st.shared.b64 [%a], %x0; st.shared.b64 [%a+8], %x0;"
      "setp.ne.u32 %p, 1, 0; mov.b64 %x1, 0; createpolicy.fractional.L2::evict_last.b64 %x1, 1.0;" +
      name + " [%a32], [%from], " + std::to_string(bytes) + operands +
      "; cp.async.commit_group; cp.async.wait_group 0; ld.shared.b64 %d0, [%a]; "
      "ld.shared.b64 %d1, [%a+8];";
  const auto reference = [=](const u64* s, u64* d) {
    const u128 source = static_cast<u128>(s[1]) << 64 | s[0];
    u128 memory = static_cast<u128>(kFill) << 64 | kFill;
    for (unsigned i = 0; i < bytes; ++i) {
      memory &= ~(static_cast<u128>(255) << (8 * i));
      if (i < taken) memory |= (source >> (8 * i) & 255) << (8 * i);
    }
    d[0] = static_cast<u64>(memory);
    d[1] = static_cast<u64>(memory >> 64);
  };
  const std::vector<Kind> words{Kind::Int64, Kind::Int64};
  const std::string remark = std::to_string(bytes) + operands;
  if (name.ends_with("cache_hint"))
    forms.push_back({name, words, words, body, {}, {}, remark, eachLane(reference)});
  else
    forms.push_back({name, words, words, body, reference, {}, remark});
}

void copies(Forms& forms) {
  for (const unsigned bytes : {4u, 8u, 16u}) {
    for (const char* cache : {"ca", "cg"}) {
      if (cache[1] == 'g' && bytes != 16) continue;
      const std::string name = std::string("cp.async.") + cache + ".shared.global",
                        hinted = name + ".L2::cache_hint";
      addCopy(forms, name, bytes, "", bytes);
      for (const unsigned taken : {0u, 3u, 4u})
        addCopy(forms, name, bytes, ", " + std::to_string(taken), taken);
      addCopy(forms, name, bytes, ", %p", 0);
      addCopy(forms, name, bytes, ", !%p", bytes);
      addCopy(forms, hinted, bytes, ", %x1", bytes);
      addCopy(forms, hinted, bytes, ", 3, %x1", 3);
      addCopy(forms, hinted, bytes, ", %p, %x1", 0);
    }
  }
}

void addObject(Forms& forms, const std::string& name, const std::string& remark,
               const std::string& body, Kind result, u64 value) {
  forms.push_back({name,
                   {result},
                   {},
                   kShared + body + "mbarrier.inval.shared.b64 [%a];",
                   [=](const u64*, u64* d) { d[0] = value; },
                   {},
                   remark});
}

/// A phase of two arrivals. `body` follows the first.
void addPhase(Forms& forms, const std::string& name, const std::string& body, bool complete) {
  addObject(forms, name, body,
            "mbarrier.init.shared.b64 [%a], 2; mbarrier.arrive.shared.b64 %x0, [%a];" + body,
            Kind::Pred, complete);
}

void phases(Forms& forms) {
  const std::string arrive = "mbarrier.arrive.shared.b64 %x1, [%a];";
  addPhase(forms, "mbarrier.test_wait.shared.b64", "mbarrier.test_wait.shared.b64 %d0, [%a], %x0;",
           false);
  for (const std::string how : {"test_wait", "try_wait"}) {
    for (const char* words : {".shared", ".shared::cta", ".acquire.cta.shared::cta",
                              ".acquire.cluster.shared::cta", ".relaxed.cta.shared::cta"}) {
      const std::string name = "mbarrier." + how + words + ".b64",
                        parity = "mbarrier." + how + ".parity" + words + ".b64";
      addPhase(forms, name, arrive + name + " %d0, [%a], %x0;", true);
      addPhase(forms, parity, arrive + parity + " %d0, [%a], 0;", true);
    }
    const std::string parity = "mbarrier." + how + ".parity.shared.b64";
    addPhase(forms, parity, "mov.b32 %t0, 1;" + parity + " %d0, [%a], %t0;", true);
  }
  addPhase(forms, "mbarrier.test_wait.parity.shared.b64",
           "mbarrier.test_wait.parity.shared.b64 %d0, [%a], 0;", false);
  addPhase(forms, "mbarrier.test_wait.parity.shared.b64",
           arrive + "mbarrier.test_wait.parity.shared.b64 %d0, [%a], 1;", false);
  addPhase(forms, "mbarrier.try_wait.shared.b64",
           arrive + "mbarrier.try_wait.shared.b64 %d0, [%a], %x0, 1000;", true);
}

/// Ways to arrive once more, after which the phase is over.
void arrivals(Forms& forms) {
  const std::string test = "mbarrier.test_wait.parity.shared.b64 %d0, [%a], 0;";
  for (const char* words : {"arrive.shared", "arrive.shared::cta", "arrive.release.cta.shared::cta",
                            "arrive.release.cluster.shared::cta", "arrive.relaxed.cta.shared::cta",
                            "arrive_drop.shared", "arrive_drop.release.cta.shared::cta"}) {
    const std::string name = std::string("mbarrier.") + words + ".b64";
    addPhase(forms, name, name + " %x1, [%a];" + test, true);
    addPhase(forms, name, name + " %x1, [%a], 1;" + test, true);
  }
  for (const char* words : {"arrive.shared::cluster", "arrive.release.cluster.shared::cluster",
                            "arrive_drop.shared::cluster"}) {
    const std::string name = std::string("mbarrier.") + words + ".b64";
    addPhase(forms, name, name + " _, [%a32];" + test, true);
    addPhase(forms, name, name + " _, [%a32], 1;" + test, true);
  }
  addPhase(forms, "mbarrier.arrive.b64",
           "cvta.shared.u64 %x2, %a; mbarrier.arrive.b64 %x1, [%x2];" + test, true);
  const std::string noComplete = "mbarrier.arrive.noComplete.shared.b64";
  addObject(forms, noComplete, "3 of 4",
            "mbarrier.init.shared.b64 [%a], 4;" + noComplete + " %x1, [%a], 3;" + test, Kind::Pred,
            0);
  // Whoever drops out is not expected in the phase after.
  addObject(forms, "mbarrier.arrive_drop.shared.b64", "next phase",
            "mbarrier.init.shared.b64 [%a], 3; mbarrier.arrive_drop.shared.b64 %x0, [%a], 2;"
            "mbarrier.arrive.shared.b64 %x0, [%a]; mbarrier.arrive.shared.b64 %x0, [%a];"
            "mbarrier.test_wait.parity.shared.b64 %d0, [%a], 1;",
            Kind::Pred, 1);
  // What a state says is pending is from before the arrival.
  addObject(forms, "mbarrier.pending_count.b64", "",
            "mbarrier.init.shared.b64 [%a], 9; mbarrier.arrive.noComplete.shared.b64 %x0, [%a], 2;"
            "mbarrier.arrive.noComplete.shared.b64 %x0, [%a], 3;"
            "mbarrier.pending_count.b64 %d0, %x0;",
            Kind::Int32, 7);
}

/// A phase ends when the arrivals and the bytes are complete.
void transactions(Forms& forms) {
  const std::string test = "mbarrier.test_wait.parity.shared.b64 %d0, [%a], 0;";
  for (const char* space : {"shared::cta", "shared::cluster"}) {
    for (const char* scope : {"cta", "cluster"}) {
      const std::string words = std::string(".relaxed.") + scope + "." + space + ".b64",
                        expect = "mbarrier.expect_tx" + words,
                        complete = "mbarrier.complete_tx" + words,
                        arrive = "mbarrier.arrive.shared.b64 %x1, [%a];";
      addPhase(forms, expect, expect + " [%a32], 16;" + arrive + test, false);
      addPhase(forms, complete, expect + " [%a32], 16;" + arrive + complete + " [%a32], 16;" + test,
               true);
      addPhase(forms, complete, expect + " [%a32], 16;" + complete + " [%a32], 16;" + test, false);
      addPhase(forms, complete, expect + " [%a32], 16;" + arrive + complete + " [%a32], 12;" + test,
               false);
    }
  }
  for (const char* words :
       {"arrive.expect_tx.shared::cta", "arrive.expect_tx.release.cta.shared::cta",
        "arrive.expect_tx.relaxed.cta.shared::cta", "arrive_drop.expect_tx.shared::cta"}) {
    const std::string name = std::string("mbarrier.") + words + ".b64",
                      complete = "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%a], 8;";
    addPhase(forms, name, name + " %x1, [%a], 8;" + test, false);
    addPhase(forms, name, name + " %x1, [%a], 8;" + complete + test, true);
  }
  const std::string remote = "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64";
  addPhase(forms, remote,
           remote +
               " _, [%a32], 8; mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 "
               "[%a32], 8;" +
               test,
           true);
}

// Each thread has 16 bytes of data and an mbarrier behind them.
const std::string kAwait =
    "AWAIT: mbarrier.try_wait.parity.shared.b64 %p, [%a+16], 0; @!%p bra AWAIT; "
    "ld.shared.b64 %d0, [%a]; ld.shared.b64 %d1, [%a+8];";

std::string begun(unsigned bytes) {
  return std::string(kShared) +
         "mbarrier.init.shared.b64 [%a+16], 1; fence.mbarrier_init.release.cluster;"
         "mbarrier.arrive.expect_tx.shared::cta.b64 %x0, [%a+16], " +
         std::to_string(bytes) + ";";
}

void storesAsync(Forms& forms) {
  struct Row {
    const char* type;
    unsigned count, bytes;
  };
  const Row rows[] = {{"b32", 1, 4}, {"u32", 1, 4}, {"s32", 1, 4},  {"b64", 1, 8}, {"u64", 1, 8},
                      {"s64", 1, 8}, {"b32", 2, 8}, {"u32", 4, 16}, {"b64", 2, 16}};
  for (const Row& row : rows) {
    const bool wide = row.bytes / row.count == 8;
    const std::string vector = row.count == 1 ? "" : ".v" + std::to_string(row.count);
    const std::string name =
        "st.async.shared::cluster.mbarrier::complete_tx::bytes" + vector + "." + row.type;
    std::string values = wide ? "%s0" : "%t0";
    if (row.count == 2) values = wide ? "{%s0, %s1}" : "{%t0, %t1}";
    if (row.count == 4) values = "{%t0, %t1, %y1, %y2}";
    const std::string body = begun(row.bytes) +
                             "mov.b64 %x1, 0; st.shared.b64 [%a], %x1; st.shared.b64 [%a+8], %x1;"
                             "mov.b64 {%t0, %t1}, %s0; mov.b64 {%y1, %y2}, %s1;" +
                             name + " [%a32], " + values + ", [%a32+16];" + kAwait;
    const auto reference = [=](const u64* s, u64* d) {
      d[0] = cut(s[0], std::min(64u, 8 * row.bytes));
      d[1] = row.bytes == 16 ? s[1] : 0;
    };
    const std::vector<Kind> words{Kind::Int64, Kind::Int64};
    forms.push_back({name, words, words, body, {}, {}, {}, eachLane(reference)});
  }
}

u64 reduced(const std::string& operation, u64 a, u64 b, const Integer& type) {
  const i128 x = numberIn(a, type), y = numberIn(b, type);
  if (operation == "inc") return x >= y ? 0 : static_cast<u64>(x + 1);
  if (operation == "dec") return x == 0 || x > y ? static_cast<u64>(y) : static_cast<u64>(x - 1);
  if (operation == "min") return static_cast<u64>(std::min(x, y));
  if (operation == "max") return static_cast<u64>(std::max(x, y));
  return operation == "add"   ? a + b
         : operation == "and" ? a & b
         : operation == "or"  ? a | b
                              : a ^ b;
}

void reductionsAsync(Forms& forms) {
  for (const char* pattern :
       {"(inc|dec|min|max|add).u32", "(min|max|add).s32", "(and|or|xor).b32", "add.u64"}) {
    for (const std::string& what : expand(pattern)) {
      const Words words(what);
      const Integer type = integerType(words[1]);
      const std::string name =
          "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes." + what;
      const std::string body = begun(type.bits / 8) +
                               "mov.b64 {%t0, %t1}, %s1; st.shared.b64 [%a], %s0; mov.b64 %x1, 0; "
                               "st.shared.b64 [%a+8], %x1;" +
                               name + " [%a32], " + (type.bits == 64 ? "%s1" : "%t0") +
                               ", [%a32+16];" + kAwait;
      const auto reference = [=](const u64* s, u64* d) {
        const u64 kept = type.bits == 64 ? 0 : s[0] & ~u64{0xffffffff};
        d[0] = kept |
               cut(reduced(words[0], cut(s[0], type.bits), cut(s[1], type.bits), type), type.bits);
      };
      const std::vector<Kind> two{Kind::Int64, Kind::Int64};
      forms.push_back({name, two, two, body, {}, {}, {}, eachLane(reference)});
    }
  }
}

/// A policy has no effect that a program could see.
void policies(Forms& forms) {
  const auto same = [](const u64* s, u64* d) { d[0] = s[0]; };
  for (const char* statement :
       {"createpolicy.fractional.L2::evict_last.b64 %x0, 0.5",
        "createpolicy.fractional.L2::evict_last.b64 %x0",
        "createpolicy.fractional.L2::evict_first.L2::evict_unchanged.b64 %x0, 1.0",
        "createpolicy.range.global.L2::evict_last.L2::evict_first.b64 %x0, [%to], 4096, 8192",
        "createpolicy.cvt.L2.b64 %x0, 0x10F0000000000000"}) {
    const std::string text = statement, name = text.substr(0, text.find(' '));
    const std::string body = text +
                             "; st.global.L2::cache_hint.b64 [%to], %s0, %x0; "
                             "ld.global.L2::cache_hint.b64 %d0, [%to], %x0;";
    forms.push_back({name, {Kind::Int64}, {Kind::Int64}, body, {}, {}, {}, eachLane(same)});
  }
  const auto sum = [](const u64* s, u64* d) { d[0] = s[0] + s[0]; };
  const std::string start =
      "mov.b64 %x0, 0; createpolicy.fractional.L2::evict_last.b64 %x0;"
      "st.global.b64 [%to], %s0;";
  for (const char* name : {"atom.global.add.L2::cache_hint.u64", "atom.add.L2::cache_hint.u64"}) {
    forms.push_back({name,
                     {Kind::Int64},
                     {Kind::Int64},
                     start + name + " %x1, [%to], %s0, %x0; ld.global.b64 %d0, [%to];",
                     {},
                     {},
                     {},
                     eachLane(sum)});
  }
  const std::string red = "red.global.add.L2::cache_hint.u64";
  forms.push_back({red,
                   {Kind::Int64},
                   {Kind::Int64},
                   start + red + " [%to], %s0, %x0; ld.global.b64 %d0, [%to];",
                   {},
                   {},
                   {},
                   eachLane(sum)});
}

}  // namespace

void asyncForms(Forms& forms) {
  copies(forms);
  phases(forms);
  arrivals(forms);
  transactions(forms);
  storesAsync(forms);
  reductionsAsync(forms);
  policies(forms);
}

}  // namespace instructions
