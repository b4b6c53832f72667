#include "interposer/code/kernels.h"

#include <algorithm>
#include <memory>

#include "interposer/contexts/contexts.h"
#include "interposer/session/call.h"
#include "interposer/session/call_hooks.h"

namespace interposer {

namespace {

LoadedCode& loadedCode() {
  static LoadedCode* const instance = new LoadedCode;
  return *instance;
}

}  // namespace

Kernel* findKernel(std::uint64_t handle) {
  static_assert(kKernelsRemembered == 64);
  auto& [rememberedHandle, remembered] =
      Thread::current().kernels[(handle * 0x9e3779b97f4a7c15u) >> 58];
  if (rememberedHandle == handle && remembered != nullptr) [[likely]]
    return remembered.get();
  auto found = loadedCode().find(handle);
  if (found == nullptr) return nullptr;
  rememberedHandle = handle;
  remembered = std::move(found);
  return remembered.get();
}

std::shared_ptr<Kernel> readKernel(wire::Decoder& reply, CodeOwners owners) {
  const auto handle = reply.get<std::uint64_t>();
  const char* name = reply.getString(wire::kNameBytes);
  if (!reply.ok()) return nullptr;
  auto described = std::make_shared<Kernel>();
  described->handle = handle;
  described->name = name;
  currentDevice(&described->device);
  return loadedCode().add(handle, owners, std::move(described));
}

void addModule(CUmodule module, std::uint64_t library) {
  loadedCode().add(number(module), {library, number(Thread::current().context())}, nullptr);
}

bool isModuleOf(CUmodule module, CUcontext context) {
  return loadedCode().isModuleOf(number(module), number(context));
}

void forgetCode(std::uint64_t ended) {
  const LoadedCode::Ended all = loadedCode().end(ended);
  for (const auto& [handle, kernel] : all) {
    if (kernel != nullptr) kernel->answers.forget();  // for a thread that still finds it
  }
  const auto unloaded = [&](std::uint64_t code) { return all.contains(code); };
  Session::current()->deviceRanges.removeOf(unloaded);
  codeEnded(unloaded);
}

void Kernel::setParameters(std::span<const KernelParameter> layout) {
  const std::lock_guard lock(mutex);
  if (known_) return;
  parameters_.assign(layout.begin(), layout.end());
  for (const KernelParameter& parameter : layout)
    parameterBytes_ = std::max(parameterBytes_, parameter.offset + parameter.size);
  known_.store(true, std::memory_order_release);
}

CUresult Kernel::parameters(const std::vector<KernelParameter>*& layout) {
  layout = &parameters_;
  if (known_.load(std::memory_order_acquire)) [[likely]]
    return CUDA_SUCCESS;
  Call call;
  if (!call.begin(CallNumber::describeKernel, 8, kOrdered)) return call.status();
  call.encoder().put(handle);
  wire::Decoder reply;
  if (const CUresult status = call.wait(reply); status != CUDA_SUCCESS) return status;
  readKernel(reply, {});
  const auto status = reply.get<CUresult>();
  const auto described = reply.getArray<KernelParameter>(4096);
  if (!reply.ok()) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  if (status == CUDA_SUCCESS) setParameters(described);
  return status;
}

std::mutex& answersMutex() {
  static std::mutex* const mutex = new std::mutex;
  return *mutex;
}

void noteSetting(const std::string& name, const Setting& setting) {
  loadedCode().eachKernel([&](Kernel& kernel) {
    if (kernel.name == name) kernel.answers.set(setting);
  });
}

void forgetKernelAttributes() {
  loadedCode().eachKernel([](Kernel& kernel) {
    kernel.answers.forget();
    const std::lock_guard content(kernel.mutex);
    kernel.functions.clear();
  });
}

}  // namespace interposer
