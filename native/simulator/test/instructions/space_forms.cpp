// Address conversion, constants, cp.async, mbarrier, the stack, fences and hints.
#include "native/simulator/test/instructions/memory_shared.h"

namespace instructions {
namespace {

/// The value of %s0 comes back as it was.
void addUnchanged(Forms& forms, const std::string& name, const std::string& middle) {
  const std::string body =
      std::string(kGlobal) + "st.global.b64 [%a], %s0;" + middle + "ld.global.b64 %d0, [%a];";
  forms.push_back({name,
                   {Kind::Int64},
                   {Kind::Int64},
                   body,
                   [](const u64* s, u64* d) { d[0] = s[0]; },
                   {},
                   {}});
}

void hints(Forms& forms) {
  for (const char* name :
       {"prefetch.global.L1", "prefetch.global.L2", "prefetch.L1", "prefetch.L2", "prefetchu.L1",
        "prefetch.global.L2::evict_last", "prefetch.global.L2::evict_normal"}) {
    addUnchanged(forms, name, std::string(name) + " [%a];");
  }
  for (const char* name :
       {"membar.cta", "membar.gl", "membar.sys", "fence.sc.cta", "fence.sc.gpu", "fence.sc.sys",
        "fence.sc.cluster", "fence.acq_rel.cta", "fence.acq_rel.gpu", "fence.acq_rel.sys",
        "fence.acq_rel.cluster", "fence.proxy.async", "fence.mbarrier_init.release.cluster"}) {
    addUnchanged(forms, name, std::string(name) + ";");
  }
  addUnchanged(
      forms, "applypriority.global.L2::evict_normal",
      "and.b64 %x0, %a, 0xffffffffffffff80; applypriority.global.L2::evict_normal [%x0], 128;");
  addUnchanged(forms, "griddepcontrol.wait", "griddepcontrol.wait;");
  addUnchanged(forms, "griddepcontrol.launch_dependents", "griddepcontrol.launch_dependents;");
  addUnchanged(forms, "nanosleep.u32", "nanosleep.u32 1;");
  addUnchanged(forms, "pmevent", "pmevent 3;");
}

void spaces(Forms& forms) {
  struct Row {
    const char* from;
    const char* setup;
  };
  static const std::string shared = std::string(kShared) + "cvta.shared.u64 %a, %a;",
                           local = std::string(kLocal) + "cvta.local.u64 %a, %a;";
  const Row rows[] = {{"global", kGlobal}, {"shared", shared.c_str()}, {"local", local.c_str()}};
  for (const Row& row : rows) {
    for (const char* asked : {"global", "shared", "local", "const", "shared::cta"}) {
      const std::string name = std::string("isspacep.") + asked;
      const bool is = std::string(asked).starts_with(row.from);
      forms.push_back({name,
                       {Kind::Pred},
                       {},
                       std::string(row.setup) + name + " %d0, %a;",
                       [=](const u64*, u64* d) { d[0] = is; },
                       {},
                       row.from});
    }
  }
  const auto same = [](const u64* s, u64* d) { d[0] = s[0]; };
  for (const char* space : {"shared", "local", "global"}) {
    const std::string word = space, setup = word == "shared"  ? kShared
                                            : word == "local" ? kLocal
                                                              : kGlobal;
    const std::string back = "cvta." + word + ".u64 %a, %a; st.b64 [%a], %s0; cvta.to." + word +
                             ".u64 %a, %a; ld." + word + ".b64 %d0, [%a];";
    forms.push_back(
        {"cvta.to." + word + ".u64", {Kind::Int64}, {Kind::Int64}, setup + back, same, {}, {}});
  }
  // A table of 64-bit numbers, number i is i * 0x0101010101010101.
  const std::string read =
      "and.b32 %t0, %s0, 7; mul.wide.u32 %x0, %t0, 8; mov.u64 %a, table; add.u64 %a, %a, %x0;";
  const auto entry = [](const u64* s, u64* d) { d[0] = (s[0] & 7) * 0x0101010101010101; };
  const auto half = [](const u64* s, u64* d) { d[0] = (s[0] & 7) * 0x01010101; };
  forms.push_back({"ld.const.u64",
                   {Kind::Int64},
                   {Kind::Int32},
                   read + "ld.const.u64 %d0, [%a];",
                   entry,
                   {},
                   {}});
  forms.push_back({"ld.const.u32",
                   {Kind::Int32},
                   {Kind::Int32},
                   read + "ld.const.u32 %d0, [%a+4];",
                   half,
                   {},
                   {}});
  forms.push_back({"ld.u64",
                   {Kind::Int64},
                   {Kind::Int32},
                   read + "cvta.const.u64 %a, %a; ld.u64 %d0, [%a];",
                   entry,
                   {},
                   "const"});
  forms.push_back({"ld.global.nc.u64",
                   {Kind::Int64},
                   {Kind::Int64},
                   "ld.global.nc.u64 %d0, [%from];",
                   same,
                   {},
                   {}});
  forms.push_back({"ldu.global.u64",
                   {Kind::Int64},
                   {Kind::Int64},
                   "ldu.global.u64 %d0, [%from];",
                   same,
                   {},
                   {}});
  forms.push_back({"ld.global.nc.L1::no_allocate.L2::128B.u64",
                   {Kind::Int64},
                   {Kind::Int64},
                   "ld.global.nc.L1::no_allocate.L2::128B.u64 %d0, [%from];",
                   same,
                   {},
                   {}});
}

void stacks(Forms& forms) {
  const std::string body =
      "stacksave.u64 %x1; alloca.u64 %a, 32, 8; st.local.b64 [%a+24], %s0; ld.local.b64 %d0, "
      "[%a+24]; stackrestore.u64 %x1;";
  forms.push_back({"alloca.u64",
                   {Kind::Int64},
                   {Kind::Int64},
                   body,
                   [](const u64* s, u64* d) { d[0] = s[0]; },
                   {},
                   {}});
}

void asynchronousCopies(Forms& forms) {
  for (const unsigned bytes : {4u, 8u, 16u}) {
    for (const char* cache : {"ca", "cg"}) {
      if (cache[1] == 'g' && bytes != 16) continue;
      for (const int taken : {-1, 0, 3, 4}) {
        const std::string name = std::string("cp.async.") + cache + ".shared.global";
        const std::string size =
            std::to_string(bytes) + (taken < 0 ? "" : ", " + std::to_string(taken));
        const std::string body =
            std::string(kShared) +
            "mov.b64 %x0, 0x1122334455667788; st.shared.b64 [%a], %x0; st.shared.b64 [%a+8], %x0;" +
            name + " [%a32], [%from], " + size +
            "; cp.async.commit_group; cp.async.wait_group 0; ld.shared.b64 %d0, [%a]; "
            "ld.shared.b64 %d1, [%a+8];";
        const auto reference = [=](const u64* s, u64* d) {
          constexpr u64 kFill = 0x1122334455667788;
          const u128 source = static_cast<u128>(s[1]) << 64 | s[0];
          const unsigned copied = taken < 0 ? bytes : static_cast<unsigned>(taken);
          u128 memory = static_cast<u128>(kFill) << 64 | kFill;
          for (unsigned i = 0; i < bytes; ++i) {
            memory &= ~(static_cast<u128>(255) << (8 * i));
            if (i < copied) memory |= (source >> (8 * i) & 255) << (8 * i);
          }
          d[0] = static_cast<u64>(memory);
          d[1] = static_cast<u64>(memory >> 64);
        };
        forms.push_back({name,
                         {Kind::Int64, Kind::Int64},
                         {Kind::Int64, Kind::Int64},
                         body,
                         reference,
                         {},
                         size});
      }
    }
  }
}

void barrierObjects(Forms& forms) {
  const std::string start =
      std::string(kShared) +
      "mbarrier.init.shared.b64 [%a], 2; mbarrier.arrive.shared.b64 %x0, [%a];";
  const auto is = [](bool value) { return [=](const u64*, u64* d) { d[0] = value; }; };
  const std::string end = "mbarrier.inval.shared.b64 [%a];";
  const auto add = [&](const char* name, const std::string& body, bool value) {
    forms.push_back({name,
                     {Kind::Pred},
                     {},
                     start + body + end,
                     is(value),
                     {},
                     value ? "complete" : "incomplete"});
  };
  const std::string arrive = "mbarrier.arrive.shared.b64 %x1, [%a];";
  add("mbarrier.test_wait.shared.b64", "mbarrier.test_wait.shared.b64 %d0, [%a], %x0;", false);
  add("mbarrier.test_wait.shared.b64", arrive + "mbarrier.test_wait.shared.b64 %d0, [%a], %x0;",
      true);
  add("mbarrier.try_wait.shared.b64", arrive + "mbarrier.try_wait.shared.b64 %d0, [%a], %x0;",
      true);
  add("mbarrier.test_wait.parity.shared.b64", "mbarrier.test_wait.parity.shared.b64 %d0, [%a], 0;",
      false);
  add("mbarrier.test_wait.parity.shared.b64",
      arrive + "mbarrier.test_wait.parity.shared.b64 %d0, [%a], 0;", true);
  add("mbarrier.test_wait.parity.shared.b64",
      arrive + "mbarrier.test_wait.parity.shared.b64 %d0, [%a], 1;", false);
}

}  // namespace

void spaceForms(Forms& forms) {
  hints(forms);
  spaces(forms);
  stacks(forms);
  asynchronousCopies(forms);
  barrierObjects(forms);
}

}  // namespace instructions
