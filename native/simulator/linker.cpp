// Links PTX: of texts, fat binaries, object files and archives. The result is an ELF file with one
// fat binary for each text, which cuModuleLoadData compiles together.
#include <algorithm>
#include <iterator>
#include <set>
#include <span>

#include "native/simulator/driver_call.h"
#include "native/simulator/engine.h"
#include "native/simulator/fatbin.h"
#include "native/simulator/handles.h"
#include "native/simulator/jit_options.h"
#include "native/simulator/linked_image.h"
#include "native/simulator/log.h"
#include "native/simulator/module.h"

namespace simulator {

struct LinkState {
  JitOptions options;
  std::vector<std::string> texts;
  std::set<std::string> defined;  ///< names that no further text may define
  std::string image;              ///< cuLinkComplete gives its address
};

}  // namespace simulator

using namespace simulator;

namespace {

template <class Body>
CUresult onLink(CUlinkState state, Body&& body) {
  return inContext([&](Context&) -> CUresult {
    const auto link = Handles<LinkState>::all().find(state);
    return link == nullptr ? CUDA_ERROR_INVALID_HANDLE : body(*link);
  });
}

CUresult reported(LinkState& link, CUresult status, const std::string& sentence) {
  link.options.report(status == CUDA_SUCCESS ? "" : "error   : " + sentence);
  if (status != CUDA_SUCCESS) logError(sentence);
  return status;
}

/// Adds the texts of an input. cuLinkComplete resolves their names, and fails after a name that was
/// defined again. Reads only the new texts, as a link may have thousands.
CompileError readInput(LinkState& link, CUjitInputType type, std::span<const std::byte> data) {
  CompileError error;
  std::vector<std::string> texts;
  error.result = readLinkInput(type, data, texts, error.sentence);
  if (error.result != CUDA_SUCCESS) return error;
  std::vector<std::string> defined;
  for (const std::string& text : texts) {
    std::vector<std::string> names;
    error = checkText(text, names);
    if (error.result != CUDA_SUCCESS) return error;
    std::move(names.begin(), names.end(), std::back_inserter(defined));
  }
  std::move(texts.begin(), texts.end(), std::back_inserter(link.texts));
  for (const std::string& name : defined)
    if (!link.defined.insert(name).second) return definedAgain(name);
  return {};
}

CUresult add(CUlinkState state, CUjitInputType type, std::span<const std::byte> data,
             const JitOptions& options) {
  return onLink(state, [&](LinkState& link) -> CUresult {
    if (data.data() == nullptr || data.empty() || !options.valid()) return CUDA_ERROR_INVALID_VALUE;
    const CompileError error = readInput(link, type, data);
    return reported(link, error.result, error.sentence);
  });
}

}  // namespace

DRIVER_CALL cuLinkCreate_v2(unsigned int numOptions, CUjit_option* options, void** optionValues,
                            CUlinkState* stateOut) {
  return inContext([&](Context&) -> CUresult {
    JitOptions read(numOptions, options, optionValues);
    if (stateOut == nullptr || !read.valid()) return CUDA_ERROR_INVALID_VALUE;
    auto link = std::make_shared<LinkState>(LinkState{read, {}, {}, {}});
    *stateOut = handleOf<CUlinkState>(link.get());
    Handles<LinkState>::all().add(std::move(link));
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, size_t size,
                             const char*, unsigned int numOptions, CUjit_option* options,
                             void** optionValues) {
  return add(state, type, {static_cast<const std::byte*>(data), size},
             JitOptions(numOptions, options, optionValues));
}

DRIVER_CALL cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path,
                             unsigned int numOptions, CUjit_option* options, void** optionValues) {
  std::vector<char> bytes;
  const CUresult status = readFile(path, bytes);
  if (status != CUDA_SUCCESS) return status;
  bytes.pop_back();  // the terminator
  return add(state, type, std::as_bytes(std::span(bytes)),
             JitOptions(numOptions, options, optionValues));
}

DRIVER_CALL cuLinkComplete(CUlinkState state, void** cubinOut, size_t* sizeOut) {
  return onLink(state, [&](LinkState& link) -> CUresult {
    if (cubinOut == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<Program> program;
    const CompileError error = compileTexts(link.texts, program, Externs::refuse);
    if (error.result != CUDA_SUCCESS) return reported(link, error.result, error.sentence);
    link.image = linkedImage(link.texts);
    *cubinOut = link.image.data();
    if (sizeOut != nullptr) *sizeOut = link.image.size();
    return reported(link, CUDA_SUCCESS, {});
  });
}

DRIVER_CALL cuLinkDestroy(CUlinkState state) {
  return inDriver([&]() -> CUresult {
    return Handles<LinkState>::all().remove(state) == nullptr ? CUDA_ERROR_INVALID_HANDLE
                                                              : CUDA_SUCCESS;
  });
}
