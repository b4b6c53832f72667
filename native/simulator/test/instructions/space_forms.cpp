// Address conversion, constants, the stack, fences and hints.
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
    for (const char* asked :
         {"global", "shared", "local", "const", "shared::cta", "shared::cluster"}) {
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

/// Without a cluster a block is the only one of its own.
void ranks(Forms& forms) {
  const auto zero = [](const u64*, u64* d) { d[0] = 0; };
  for (const char* text :
       {"getctarank.shared::cluster.u32 %d0, %a32", "getctarank.shared::cluster.u64 %d0, %a",
        "cvta.shared.u64 %a, %a; getctarank.u64 %d0, %a"}) {
    const std::string body = text, last = body.substr(body.find("getctarank"));
    forms.push_back(
        {last.substr(0, last.find(' ')), {Kind::Int32}, {}, kShared + body + ";", zero, {}, {}});
  }
  const std::string mapped = "mapa.shared::cluster.u32";
  forms.push_back({mapped,
                   {Kind::Int64},
                   {Kind::Int64},
                   std::string(kShared) + "st.shared.b64 [%a], %s0;" + mapped +
                       " %t0, %a32, 0; ld.shared::cluster.b64 %d0, [%t0];",
                   [](const u64* s, u64* d) { d[0] = s[0]; },
                   {},
                   {}});
}

}  // namespace

void spaceForms(Forms& forms) {
  hints(forms);
  spaces(forms);
  stacks(forms);
  ranks(forms);
}

}  // namespace instructions
