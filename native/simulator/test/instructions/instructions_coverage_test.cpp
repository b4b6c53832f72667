// The table of forms is complete: it has every opcode that is decoded, and its kernels use every
// function over lanes that accesses memory or other lanes. An instruction without a form fails.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "native/simulator/ptx/lanes/form.h"
#include "native/simulator/ptx/program/legality.h"
#include "native/simulator/ptx/program/lowerer.h"
#include "native/simulator/test/instructions/kernel.h"

namespace {

using instructions::Form;
using simulator::ptx::Handler;
using simulator::ptx::LinkedProgram;
using simulator::ptx::Op;
using simulator::ptx::Operation;
using simulator::ptx::Space;
using simulator::ptx::Type;

/// Opcodes whose work is not a function of operands, with their tests.
const std::map<std::string_view, const char*> kElsewhere{
    {"bra", "divergence_test.cpp"},     {"brx", "divergence_test.cpp"},
    {"ret", "call_test.cpp"},           {"exit", "divergence_test.cpp"},
    {"trap", "memory_test.cpp"},        {"call", "call_test.cpp"},
    {"multimem", "memory_test.cpp"},    {"bar", "barrier_test.cpp"},
    {"barrier", "barrier_test.cpp"},    {"brkpt", "no effect to see"},
    {"setmaxnreg", "no effect to see"}, {"discard", "no effect to see"},
    {"wmma", "tensor_cores.cu"},        {"tex", "texture_test.cpp"},
    {"tld4", "texture_test.cpp"},       {"txq", "texture_test.cpp"},
    {"suq", "texture_test.cpp"},        {"suld", "surface_test.cpp"},
    {"sust", "surface_test.cpp"},       {"sured", "surface_test.cpp"},
};

TEST_CASE("every opcode has a form or another test") {
  const instructions::Forms forms = instructions::allForms();
  std::set<std::string> tested;
  for (const Form& form : forms) {
    const std::string body = form.body.empty() ? form.name : form.name + ";" + form.body;
    for (std::size_t at = 0; at < body.size();) {
      const std::size_t end = std::min(body.find(';', at), body.size()),
                        begin = std::min(body.find_first_not_of(" ", at), end);
      tested.insert(body.substr(begin, body.find_first_of(". ", begin) - begin));
      at = end + 1;
    }
  }
  for (const std::string_view opcode : simulator::ptx::Lowerer::opcodes()) {
    if (tested.contains(std::string(opcode)) || kElsewhere.contains(opcode)) continue;
    FAIL_CHECK("no form tests the opcode '" << std::string(opcode) << "'");
  }
}

std::set<Handler> used(const instructions::Forms& forms) {
  constexpr std::size_t kStep = 256;
  std::set<Handler> handlers;
  const std::span<const Form> all(forms);
  for (std::size_t at = 0; at < all.size(); at += kStep) {
    const std::string text =
        instructions::moduleFor(all.subspan(at, std::min(kStep, all.size() - at)));
    const std::string_view view = text;
    const LinkedProgram program({&view, 1}, simulator::Externs::define);
    for (std::size_t kernel = 0; kernel < program.kernels().size(); ++kernel) {
      for (const Operation& operation : program.kernelCode(kernel).operations) {
        handlers.insert(operation.run);
        handlers.insert(operation.inner);
      }
    }
  }
  return handlers;
}

/// Whether a decoder asks for this function. 32-bit generic addresses are of 32-bit programs, mapa
/// needs a cluster.
bool isAskedFor(const simulator::ptx::Form& form) {
  const bool access = form.op == Op::Load || form.op == Op::Store,
             converts = form.op == Op::ToGeneric || form.op == Op::FromGeneric;
  if (form.op == Op::MapRank || form.space == Space::Register ||
      (converts && form.type != Type::U64))
    return false;
  if (form.op == Op::LoadParameter) return form.sourceBytes >= bytesOf(form.type);
  if (converts) return form.sourceBytes == 8;
  if (access) return form.space != Space::Param && form.sourceBytes >= bytesOf(form.type);
  if (form.op > Op::AtomCompare || form.op < Op::AtomAdd) return true;
  const bool placed =
      form.space == Space::Generic || form.space == Space::Global || form.space == Space::Shared;
  return placed && legalAtomic(form, !isWide(form.type) && isFloat(form.type));
}

// For the other instructions, the spellings of the table are all that are accepted:
// instructions_test.cpp tries the rest.
TEST_CASE("every function for memory, atomics and warps is used by a form") {
  const instructions::Forms forms = instructions::allForms();
  const std::set<Handler> hit = used(forms);
  std::set<Handler> asked;
  for (int op = static_cast<int>(Op::Load); op <= static_cast<int>(Op::ActiveMask); ++op) {
    for (int type = 0; type <= static_cast<int>(Type::F64); ++type) {
      for (int space = 0; space <= static_cast<int>(Space::Param); ++space) {
        for (const unsigned bytes : {2u, 4u, 8u}) {
          for (const bool noReturn : {false, true}) {
            const simulator::ptx::Form form{.op = static_cast<Op>(op),
                                            .type = static_cast<Type>(type),
                                            .space = static_cast<Space>(space),
                                            .noReturn = noReturn,
                                            .sourceBytes = bytes};
            const Handler handler = isAskedFor(form) ? simulator::ptx::laneKernel(form) : nullptr;
            if (!handler || !asked.insert(handler).second || hit.contains(handler)) continue;
            FAIL_CHECK("no form uses the function for op " << op << ", type " << type << ", space "
                                                           << space << ", " << bytes << " bytes"
                                                           << (noReturn ? ", no return" : ""));
          }
        }
      }
    }
  }
  std::printf("%zu functions over lanes are used, %zu of memory, atomics and warps are asked for\n",
              hit.size(), asked.size());
}

}  // namespace
