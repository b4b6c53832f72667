#include "native/simulator/test/instructions/kernel.h"

namespace instructions {
namespace {

std::string typeOf(Kind kind) {
  return kind == Kind::Pred ? ".pred" : ".b" + std::to_string(registerBits(kind));
}

std::string numbered(const char* name, std::size_t index) { return name + std::to_string(index); }

std::string declarations(const Form& form) {
  std::string text =
      "  .reg .pred %odd;\n  .reg .b32 %thread, %t0, %t1, %w, %a32, %y1, %y2;\n  .reg .b16 %h0, "
      "%h1, %h2;\n"
      "  .reg .b64 %from, %to, %offset, %a, %x0, %x1, %x2;\n  .reg .pred %p;\n";
  if (form.body.find("scratch") != std::string::npos)
    text += "  .shared .align 16 .b8 scratch[8192];\n";
  if (form.body.find("mine") != std::string::npos) text += "  .local .align 16 .b8 mine[32];\n";
  for (std::size_t i = 0; i < form.sources.size(); ++i)
    text += "  .reg " + typeOf(form.sources[i]) + " " + numbered("%s", i) + ";\n";
  for (std::size_t i = 0; i < form.results.size(); ++i) {
    text += "  .reg " + typeOf(form.results[i]) + " " + numbered("%d", i) + ", " +
            numbered("%g", i) + ";\n";
  }
  return text;
}

constexpr const char* kAddresses =
    "  mov.u32 %thread, %ctaid.x;\n  mov.u32 %t0, %ntid.x;\n  mov.u32 %t1, %tid.x;\n"
    "  mad.lo.u32 %thread, %thread, %t0, %t1;\n  mul.wide.u32 %offset, %thread, 32;\n"
    "  ld.param.u64 %to, [results];\n  add.u64 %to, %to, %offset;\n"
    "  ld.param.u64 %from, [sources];\n  add.u64 %from, %from, %offset;\n"
    "  and.b32 %w, %thread, 1;\n  setp.ne.u32 %odd, %w, 0;\n";

std::string loads(const Form& form) {
  std::string text;
  for (std::size_t i = 0; i < form.sources.size(); ++i) {
    const std::string at = ", [%from+" + std::to_string(8 * i) + "];\n", name = numbered("%s", i);
    if (form.sources[i] == Kind::Pred) {
      text +=
          "  ld.global.b32 %w" + at + "  and.b32 %w, %w, 1;\n  setp.ne.u32 " + name + ", %w, 0;\n";
    } else {
      text += "  ld.global" + typeOf(form.sources[i]) + " " + name + at;
    }
  }
  return text;
}

std::string sentinels(const Form& form) {
  std::string text;
  for (std::size_t i = 0; i < form.results.size(); ++i) {
    const std::string name = numbered("%g", i);
    const unsigned bits = registerBits(form.results[i]);
    const u64 value = bits == 64 ? kSentinel : kSentinel & ((u64{1} << bits) - 1);
    text +=
        bits ? "  mov" + typeOf(form.results[i]) + " " + name + ", " + std::to_string(value) + ";\n"
             : "  setp.ne.u32 " + name + ", %thread, %thread;\n";
  }
  return text;
}

std::string stores(const Form& form, const char* registers, unsigned word) {
  std::string text;
  for (std::size_t i = 0; i < form.results.size(); ++i) {
    const std::string at = " [%to+" + std::to_string(8 * (word + i)) + "], ",
                      name = numbered(registers, i);
    if (form.results[i] == Kind::Pred) {
      text += "  selp.b32 %w, 1, 0, " + name + ";\n  st.global.b32" + at + "%w;\n";
    } else {
      text += "  st.global" + typeOf(form.results[i]) + at + name + ";\n";
    }
  }
  return text;
}

/// An H200 reports an illegal instruction for these in a kernel without a cluster.
std::string clusterOf(const Form& form) {
  const bool needs = form.body.find("st.async") != std::string::npos ||
                     form.body.find("red.async") != std::string::npos;
  return needs ? ".explicitcluster\n.reqnctapercluster 1, 1, 1\n" : "";
}

std::string bodyOf(const Form& form) {
  if (!form.body.empty()) return form.body;
  std::string text = form.name + " %d0";
  for (std::size_t i = 0; i < form.sources.size(); ++i) text += ", " + numbered("%s", i);
  return text + ";";
}

std::string statements(std::string body, bool guarded) {
  std::string text;
  for (std::size_t at = 0; at < body.size();) {
    const std::size_t end = body.find(';', at);
    const std::size_t begin = body.find_first_not_of(" \n", at);
    const bool declares = body.compare(begin, 5, ".reg ") == 0;
    if (!guarded || !declares)
      text += (guarded ? "  @%odd " : "  ") + body.substr(begin, end - begin) + ";\n";
    at = end + 1;
  }
  for (std::size_t at = 0; guarded && (at = text.find("%d", at)) != std::string::npos;)
    text[at + 1] = 'g';
  return text;
}

}  // namespace

std::string bareModuleFor(std::span<const Form> forms) {
  std::string text = ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n";
  for (const Form& form : forms) {
    std::string registers = "{ ";
    for (std::size_t i = 0; i < form.sources.size(); ++i)
      registers += ".reg " + typeOf(form.sources[i]) + numbered(" %s", i) + "; ";
    for (std::size_t i = 0; i < form.results.size(); ++i)
      registers += ".reg " + typeOf(form.results[i]) + numbered(" %d", i) + "; ";
    text += registers + bodyOf(form) + " }\n";
  }
  return text + "ret;\n}\n";
}

std::string moduleFor(std::span<const Form> forms) {
  std::string text =
      ".version 8.7\n.target sm_90\n.address_size 64\n.const .align 8 .u64 table[8] = {0, "
      "0x0101010101010101, 0x0202020202020202, "
      "0x0303030303030303, 0x0404040404040404, 0x0505050505050505, 0x0606060606060606, "
      "0x0707070707070707};\n";
  for (std::size_t i = 0; i < forms.size(); ++i) {
    const Form& form = forms[i];
    text += "// " + form.name + (form.remark.empty() ? "" : ", " + form.remark) +
            "\n.visible .entry f" + std::to_string(i) +
            "(.param .u64 results, .param .u64 sources, .param .u64 number)\n" + clusterOf(form) +
            "{\n" + declarations(form) + kAddresses + loads(form) + sentinels(form) +
            statements(bodyOf(form), false) +
            (form.hasGuardedCopy() ? statements(bodyOf(form), true) : "") + stores(form, "%d", 0) +
            stores(form, "%g", 2) + "  ret;\n}\n";
  }
  return text;
}

}  // namespace instructions
