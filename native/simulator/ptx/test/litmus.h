// Writes the PTX of a litmus test: a few threads, each with at most two accesses to the locations x
// and y.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace litmus {

/// An access of a thread; a write has a value of 1 or 2.
struct Step {
  enum Kind : std::uint8_t { Read, Write } kind;
  char location;
  unsigned value = 0;
};
using Thread = std::vector<Step>;

/// A type of access: elements of `bytes` bytes each, `spread` bytes from instance to instance.
struct Width {
  std::string_view vector;  ///< "", "v2", "v4"
  std::string_view type;    ///< "u32"
  unsigned elements, bytes, spread;
};

/// How accesses are written. {t} is the type, {b} its bits, {s} the scope, {m} the scope as membar
/// names it, {a} address, {v} value, {r} result.
struct Form {
  std::string_view name;
  std::string_view firstWrite, secondWrite, firstRead, secondRead, between;
  unsigned ordering;
  enum Kind : std::uint8_t { Plain, Atomic, Adding } kind = Plain;
};

/// Where the threads of a test are: in blocks, blocks of a cluster, or warps of one block.
struct Scope {
  std::string_view name, membar;
  bool oneBlock, oneCluster;
};

inline constexpr unsigned kTorn = 99;  ///< read, when the bytes of a value do not belong together

inline std::string filled(std::string_view text,
                          std::initializer_list<std::pair<char, std::string>> words) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '{' || i + 2 >= text.size() || text[i + 2] != '}') {
      result += text[i];
      continue;
    }
    for (const auto& [letter, word] : words) result += letter == text[i + 1] ? word : "";
    i += 2;
  }
  return result;
}

class Writer {
 public:
  Writer(const std::vector<Thread>& threads, const Form& form, const Width& width,
         const Scope& scope)
      : threads_(threads), form_(form), width_(width), scope_(scope) {}

  /// Kernel k(x, y, results, gate, rounds): each lane of each round is one instance of the test.
  std::string text() const {
    std::string out = R"(.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y, .param .u64 results, .param .u64 gate,
.param .u32 rounds)
{
  .reg .pred %p<4>;
  .reg .b16 %h<16>;
  .reg .b32 %r<32>;
  .reg .b64 %rd<32>;
  .reg .b16 %b16e<16>;
  .reg .b32 %b32e<16>;
  .reg .b64 %b64e<16>;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  ld.param.u64 %rd3, [results];
  ld.param.u64 %rd4, [gate];
  ld.param.u32 %r1, [rounds];
)";
    out += scope_.oneBlock ? "  mov.u32 %r2, %tid.x;\n  shr.u32 %r2, %r2, 5;\n"
                           : "  mov.u32 %r2, %ctaid.x;\n";
    for (unsigned value = 1; value <= 2; ++value) {  // every byte of a value is that value
      out += "  mov.b64 %rd" + std::to_string(10 + value) + ", " +
             std::to_string(0x0101010101010101ull * value) + ";\n";
      out += "  cvt.u" + bits() + ".u64 " + element(0, value) + ", %rd" +
             std::to_string(10 + value) + ";\n";
    }
    out += "  cvt.u" + bits() + ".u64 " + element(0, 0) + ", 0;\n";
    out += R"(  mov.u32 %r3, %laneid;
  mov.u32 %r4, 0;
$round:
)";
    out += gate();
    out += addresses();
    for (std::size_t t = 1; t < threads_.size(); ++t) {
      out += "  setp.eq.u32 %p1, %r2, " + std::to_string(t) + ";\n  @%p1 bra $thread" +
             std::to_string(t) + ";\n";
    }
    for (std::size_t t = 0; t < threads_.size(); ++t) out += thread(t);
    out += R"($next:
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p1, %r4, %r1;
  @%p1 bra $round;
  ret;
}
)";
    return out;
  }

 private:
  std::string bits() const { return std::to_string(width_.bytes == 1 ? 16 : width_.bytes * 8); }
  /// Register group 0 holds the values, 1 and 2 what the reads of a thread answered.
  std::string element(unsigned group, unsigned index) const {
    return "%b" + bits() + "e" + std::to_string(group * 4 + index);
  }

  std::string list(unsigned group, unsigned first, bool repeated) const {
    if (width_.elements == 1) return element(group, first);
    std::string result = "{";
    for (unsigned k = 0; k < width_.elements; ++k)
      result += (k ? ", " : "") + element(group, repeated ? first : first + k);
    return result + "}";
  }

  /// All threads of the test begin a round together, give or take a delay that differs from round
  /// to round.
  std::string gate() const {
    return "  setp.eq.u32 %p1, %r3, 0;\n  @%p1 red.release.gpu.global.add.u32 [%rd4], 1;\n  "
           "add.u32 %r5, %r4, 1;\n  mul.lo.u32 %r5, %r5, " +
           std::to_string(threads_.size()) + R"(;
$wait:
  ld.acquire.gpu.global.u32 %r6, [%rd4];
  setp.lt.u32 %p2, %r6, %r5;
  @%p2 bra $wait;
  bar.warp.sync -1;
  mad.lo.u32 %r7, %r4, 747796405, %r2;
  mul.lo.u32 %r7, %r7, -1640531527;
  shr.u32 %r7, %r7, 28;
$delay:
  add.s32 %r7, %r7, -1;
  setp.ge.s32 %p1, %r7, 0;
  @%p1 bra $delay;
)";
  }

  std::string addresses() const {
    const std::string spread = std::to_string(width_.spread);
    return "  mad.lo.u32 %r8, %r4, 32, %r3;\n  mul.wide.u32 %rd5, %r8, " + spread +
           ";\n  add.u64 %rd6, %rd1, %rd5;\n  add.u64 %rd7, %rd2, %rd5;\n";
  }

  std::string access(std::size_t at, const Step& step, unsigned reads) const {
    const bool writes = step.kind == Step::Write;
    const std::string_view text = writes ? (at ? form_.secondWrite : form_.firstWrite)
                                         : (at ? form_.secondRead : form_.firstRead);
    const std::string type =
        (width_.elements > 1 ? std::string(width_.vector) + "." : "") + std::string(width_.type);
    return "  " +
           filled(text, {{'t', type},
                         {'b', std::to_string(width_.bytes * 8)},
                         {'s', std::string(scope_.name)},
                         {'m', std::string(scope_.membar)},
                         {'a', step.location == 'x' ? "[%rd6]" : "[%rd7]"},
                         {'z', element(0, 0)},
                         {'o', element(3, 0)},
                         {'v', list(0, step.value, true)},
                         {'r', list(1 + reads, 0, false)}}) +
           "\n";
  }

  /// Stores the value that a read answered: 0, 1, 2, or kTorn.
  std::string answer(std::size_t thread, unsigned read) const {
    std::string out = "  cvt.u64.u" + bits() + " %rd20, " + element(1 + read, 0) +
                      ";\n  and.b64 %rd21, %rd20, 255;\n  cvt.u32.u64 %r9, %rd21;\n";
    const std::uint64_t pattern = 0x0101010101010101ull >> (64 - width_.bytes * 8);
    out += "  mul.lo.u64 %rd22, %rd21, " + std::to_string(pattern) + ";\n";
    for (unsigned k = 0; k < width_.elements; ++k) {
      out += "  cvt.u64.u" + bits() + " %rd20, " + element(1 + read, k) +
             ";\n  setp.ne.u64 %p1, %rd20, %rd22;\n  @%p1 mov.u32 %r9, " + std::to_string(kTorn) +
             ";\n";
    }
    const std::string row = std::to_string(thread * 2 + read);
    return out + "  mul.lo.u32 %r10, %r1, " + std::to_string(32 * (thread * 2 + read)) +
           ";\n  add.u32 %r10, %r10, %r8;\n  mul.wide.u32 %rd23, %r10, 4;\n  add.u64 %rd23, %rd3, "
           "%rd23;\n  st.global.u32 [%rd23], %r9;\n";
  }

  std::string thread(std::size_t number) const {
    std::string out = "$thread" + std::to_string(number) + ":\n";
    unsigned reads = 0;
    const Thread& steps = threads_[number];
    for (std::size_t at = 0; at < steps.size(); ++at) {
      if (at)
        out += "  " +
               filled(form_.between,
                      {{'s', std::string(scope_.name)}, {'m', std::string(scope_.membar)}}) +
               "\n";
      // The only access of a thread is what others wait for, so it has the form of a second write.
      out += access(steps.size() == 1 ? 1 : at, steps[at], reads);
      reads += steps[at].kind == Step::Read;
    }
    for (unsigned read = 0; read < reads; ++read) out += answer(number, read);
    return out + "  bra $next;\n";
  }

  const std::vector<Thread>& threads_;
  const Form& form_;
  const Width& width_;
  const Scope& scope_;
};

}  // namespace litmus
