// Links code images. The options of a link hold addresses of the program's log buffers, which are
// filled until it is destroyed.
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "interposer/code/jit_options.h"
#include "interposer/code/load.h"
#include "interposer/session/call.h"
#include "interposer/session/memory_file.h"
#include "interposer_bodies.h"

namespace interposer {

namespace {

class Link {
 public:
  Link(unsigned count, const CUjit_option* options, void** values)
      : options_(options, options + count), first_(values, values + count), values_(values) {}

  std::vector<std::byte> code;  ///< cuLinkComplete gives its address

  JitOptions options() { return {count(), options_.data(), first_.data()}; }
  /// Fills the program's log buffers from the start, and sets its values that are outputs.
  void decode(wire::Decoder& reply) {
    std::vector<void*> answer = first_;
    JitOptions(count(), options_.data(), answer.data()).decode(reply);
    for (unsigned i = 0; i < count(); ++i) {
      if (answer[i] != first_[i]) values_[i] = answer[i];
    }
  }

 private:
  unsigned count() const { return static_cast<unsigned>(options_.size()); }

  std::vector<CUjit_option> options_;
  std::vector<void*> first_;  ///< the values at cuLinkCreate: how large the log buffers are
  void** values_;             ///< the program's, which live as long as the link
};

struct Links {
  std::mutex mutex;
  std::map<CUlinkState, std::shared_ptr<Link>> all;
};

Links& links() {
  static Links* const instance = new Links;
  return *instance;
}

std::shared_ptr<Link> find(CUlinkState state) {
  const std::lock_guard lock(links().mutex);
  const auto found = links().all.find(state);
  return found == links().all.end() ? nullptr : found->second;
}

/// Text may come without its terminator.
CUresult addText(CUlinkState state, std::span<const std::byte> text, const char* name,
                 const JitOptions& options);

CUresult addData(CUlinkState state, CUjitInputType type, std::span<const std::byte> data,
                 const char* name, const JitOptions& options) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  const std::shared_ptr<Link> link = find(state);
  if (link == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (data.data() == nullptr || data.empty() || !options.valid()) return CUDA_ERROR_INVALID_VALUE;
  if (type == CU_JIT_INPUT_PTX && data.back() != std::byte{0})
    return addText(state, data, name, options);
  const std::string_view shown(name != nullptr ? name : "");
  if (shown.size() >= wire::kNameBytes) return CUDA_ERROR_INVALID_VALUE;
  const SentMemory memory = sendBytes(*Session::current(), {&data, 1});
  if (memory.id == 0) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  Call call;
  if (!call.begin(CallNumber::cuLinkAddData_v2, 64 + shown.size() + options.payloadBytes(),
                  kOrdered))
    return call.status();
  call.encoder().put(number(state));
  call.encoder().put(type);
  call.encoder().put(memory.id);
  call.encoder().put<std::uint64_t>(data.size());
  call.encoder().putBytes(std::string(shown).c_str(), shown.size() + 1);
  options.encode(call.encoder());
  wire::Decoder reply;
  const CUresult status = call.wait(reply);
  link->decode(reply);
  return status;
}

CUresult addText(CUlinkState state, std::span<const std::byte> text, const char* name,
                 const JitOptions& options) {
  std::vector<std::byte> whole(text.begin(), text.end());
  whole.push_back(std::byte{0});
  return addData(state, CU_JIT_INPUT_PTX, whole, name, options);
}

/// Fetches the linked code, which may be larger than a reply.
CUresult readCode(CUlinkState state, std::size_t bytes, std::vector<std::byte>& code) {
  code.clear();
  while (code.size() < bytes) {
    Call call;
    if (!call.begin(CallNumber::readLinkedCode, 16, kOrdered)) return call.status();
    call.encoder().put(number(state));
    call.encoder().put<std::uint64_t>(code.size());
    wire::Decoder reply;
    if (const CUresult status = call.wait(reply); status != CUDA_SUCCESS) return status;
    const auto chunk = reply.getBytes(wire::kReplyBytes);
    if (chunk.empty()) return CUDA_ERROR_DEVICE_UNAVAILABLE;
    code.insert(code.end(), chunk.begin(), chunk.end());
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuLinkCreate_v2(unsigned int numOptions, CUjit_option* options, void** optionValues,
                         CUlinkState* stateOut) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (stateOut == nullptr || !JitOptions(numOptions, options, optionValues).valid())
    return CUDA_ERROR_INVALID_VALUE;
  const auto link = std::make_shared<Link>(numOptions, options, optionValues);
  Call call;
  if (!call.begin(CallNumber::cuLinkCreate_v2, link->options().payloadBytes(), kOrdered))
    return call.status();
  link->options().encode(call.encoder());
  wire::Decoder reply;
  if (const CUresult status = call.wait(reply); status != CUDA_SUCCESS) return status;
  const auto state = handle<CUlinkState>(reply.get<std::uint64_t>());
  const std::lock_guard lock(links().mutex);
  links().all[state] = link;
  *stateOut = state;
  return CUDA_SUCCESS;
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, size_t size,
                          const char* name, unsigned int numOptions, CUjit_option* options,
                          void** optionValues) {
  return addData(state, type, {static_cast<const std::byte*>(data), size}, name,
                 JitOptions(numOptions, options, optionValues));
}

CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path,
                          unsigned int numOptions, CUjit_option* options, void** optionValues) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::string content;
  if (const CUresult status = readFile(path, content); status != CUDA_SUCCESS) return status;
  return addData(state, type, std::as_bytes(std::span(content)), path,
                 JitOptions(numOptions, options, optionValues));
}

CUresult cuLinkComplete(CUlinkState state, void** cubinOut, size_t* sizeOut) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  const std::shared_ptr<Link> link = find(state);
  if (link == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (cubinOut == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t bytes = 0;
  {
    Call call;
    if (!call.begin(CallNumber::cuLinkComplete, 8, kOrdered)) return call.status();
    call.encoder().put(number(state));
    wire::Decoder reply;
    const CUresult status = call.wait(reply);
    bytes = reply.get<std::uint64_t>();
    link->decode(reply);
    if (status != CUDA_SUCCESS) return status;
  }
  if (const CUresult status = readCode(state, bytes, link->code); status != CUDA_SUCCESS)
    return status;
  *cubinOut = link->code.data();
  if (sizeOut != nullptr) *sizeOut = link->code.size();
  return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState state) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  {
    const std::lock_guard lock(links().mutex);
    if (links().all.erase(state) == 0) return CUDA_ERROR_INVALID_HANDLE;
  }
  Call call;
  if (!call.begin(CallNumber::cuLinkDestroy, 8, kOrdered)) return call.status();
  call.encoder().put(number(state));
  wire::Decoder reply;
  return call.wait(reply);
}

}  // namespace interposer
