#include "native/simulator/library.h"

#include <algorithm>

#include "native/simulator/context.h"
#include "native/simulator/device.h"
#include "native/simulator/driver_call.h"
#include "native/simulator/fatbin.h"
#include "native/simulator/handles.h"
#include "native/simulator/jit_options.h"
#include "native/simulator/log.h"
#include "native/simulator/memory.h"

namespace simulator {

CUresult Library::compileOnce() {
  const std::lock_guard lock(mutex);
  if (program != nullptr || failed != CUDA_SUCCESS) return failed;
  const CompileError error =
      unreadable.result == CUDA_SUCCESS ? compileTexts(texts, program) : unreadable;
  if (program == nullptr) {
    logError(error.sentence);
    return failed = error.result;
  }
  const auto infos = program->kernels();
  for (std::size_t i = 0; i < infos.size(); ++i) {
    kernels.push_back(std::unique_ptr<Kernel>(new Kernel{*this, i, infos[i], {}}));
    for (std::size_t device = 0; device < devices().size(); ++device)
      kernels[i]->settings.push_back(std::make_unique<FunctionSettings>());
    Handles<Kernel>::all().add(std::shared_ptr<Kernel>(shared_from_this(), kernels[i].get()));
  }
  return CUDA_SUCCESS;
}

bool Library::placeManaged() {
  const auto variables = program->variables();
  for (std::size_t i = 0; i < variables.size(); ++i) {
    if (!variables[i].managed || managed.contains(i)) continue;
    const std::uint64_t address = allocateShared(std::max<std::uint64_t>(variables[i].size, 1));
    if (address == 0) return false;
    managed[i] = address;
    program->bind(i, address);
    program->initialise(i);
  }
  return true;
}

Kernel* Library::find(const std::string& name) {
  const auto found = std::find_if(kernels.begin(), kernels.end(),
                                  [&](const auto& kernel) { return kernel->info.name == name; });
  return found == kernels.end() ? nullptr : found->get();
}

CUresult moduleOf(Library& library, Context& context, std::shared_ptr<Module>& module) {
  const CUresult compiled = library.compileOnce();
  if (compiled != CUDA_SUCCESS) return compiled;
  const std::lock_guard lock(library.mutex);
  const auto known = library.modules.find(context.id.load());
  if (known != library.modules.end()) return module = known->second, CUDA_SUCCESS;
  if (!library.placeManaged()) return CUDA_ERROR_OUT_OF_MEMORY;
  std::shared_ptr<Program> program = library.program;
  if (library.programTaken) {
    const CompileError again = compileTexts(library.texts, program);
    if (program == nullptr) return again.result;
  }
  library.programTaken = true;
  std::shared_ptr<Module> loaded;
  const CUresult status = load(context, std::move(program), ptxVersionOf(library.texts),
                               library.shared_from_this(), loaded);
  if (status != CUDA_SUCCESS) return status;
  for (std::size_t i = 0; i < loaded->functions.size(); ++i)
    loaded->functions[i]->kernel = library.kernels[i].get();
  library.modules[context.id.load()] = loaded;
  module = std::move(loaded);
  return CUDA_SUCCESS;
}

CUresult functionOf(Kernel& kernel, Context& context, std::shared_ptr<Function>& function) {
  std::shared_ptr<Module> module;
  const CUresult status = moduleOf(kernel.library, context, module);
  if (status != CUDA_SUCCESS) return status;
  function = std::shared_ptr<Function>(module, module->functions[kernel.index].get());
  return CUDA_SUCCESS;
}

}  // namespace simulator

using namespace simulator;

namespace {

/// Runs body(Library&) on the library that a handle names, compiled.
template <class Body>
CUresult onLibrary(CUlibrary handle, Body&& body) {
  return inDriver([&]() -> CUresult {
    const auto library = Handles<Library>::all().find(handle);
    if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const CUresult status = library->compileOnce();
    return status == CUDA_SUCCESS ? body(*library) : status;
  });
}

template <class Body>
CUresult onKernel(CUkernel handle, Body&& body) {
  return inDriver([&]() -> CUresult {
    const auto kernel = Handles<Kernel>::all().find(handle);
    return kernel == nullptr ? CUDA_ERROR_INVALID_HANDLE : body(*kernel);
  });
}

/// Errors in the image appear when its content is first queried, as with the real driver.
CUresult load(CUlibrary* handle, const void* code, const JitOptions& options) {
  if (handle == nullptr || code == nullptr || !options.valid()) return CUDA_ERROR_INVALID_VALUE;
  std::vector<std::string> texts;
  CompileError unreadable;
  unreadable.result = readImage(code, texts, unreadable.sentence);
  auto library = std::make_shared<Library>(std::move(texts), std::move(unreadable));
  *handle = handleOf<CUlibrary>(library.get());
  Handles<Library>::all().add(std::move(library));
  return CUDA_SUCCESS;
}

/// Needs no context: the variables belong to the library.
CUresult managedOf(Library& library, std::string_view name, CUdeviceptr* dptr, size_t* bytes) {
  const std::lock_guard lock(library.mutex);
  if (!library.placeManaged()) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto variables = library.program->variables();
  for (const auto& [index, address] : library.managed) {
    if (variables[index].name != name) continue;
    if (dptr != nullptr) *dptr = address;
    if (bytes != nullptr) *bytes = variables[index].size;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}

CUresult variableOf(Library& library, Context& context, const char* name, CUdeviceptr* dptr,
                    size_t* bytes) {
  std::shared_ptr<Module> module;
  const CUresult status = moduleOf(library, context, module);
  if (status != CUDA_SUCCESS) return status;
  const int index = module->variable(name);
  if (index < 0) return CUDA_ERROR_NOT_FOUND;
  if (dptr != nullptr) *dptr = module->variables[index];
  if (bytes != nullptr) *bytes = module->program->variables()[index].size;
  return CUDA_SUCCESS;
}

}  // namespace

DRIVER_CALL cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* jitOptions,
                              void** jitOptionsValues, unsigned int numJitOptions, CUlibraryOption*,
                              void**, unsigned int) {
  return inDriver([&]() -> CUresult {
    return load(library, code, JitOptions(numJitOptions, jitOptions, jitOptionsValues));
  });
}

DRIVER_CALL cuLibraryLoadFromFile(CUlibrary* library, const char* fileName,
                                  CUjit_option* jitOptions, void** jitOptionsValues,
                                  unsigned int numJitOptions, CUlibraryOption*, void**,
                                  unsigned int) {
  return inDriver([&]() -> CUresult {
    std::vector<char> bytes;
    const CUresult status = readFile(fileName, bytes);
    const JitOptions options(numJitOptions, jitOptions, jitOptionsValues);
    return status == CUDA_SUCCESS ? load(library, bytes.data(), options) : status;
  });
}

DRIVER_CALL cuLibraryUnload(CUlibrary library) {
  return inDriver([&]() -> CUresult {
    const auto found = Handles<Library>::all().remove(library);
    if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (found->isLoaded()) synchronizeAll();
    const std::lock_guard lock(found->mutex);
    for (const auto& kernel : found->kernels) Handles<Kernel>::all().remove(kernel.get());
    for (const auto& [context, module] : found->modules) unload(*module);
    found->modules.clear();
    for (const auto& [index, address] : found->managed) releaseAt(address);
    found->managed.clear();
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuLibraryGetKernel(CUkernel* pKernel, CUlibrary library, const char* name) {
  return onLibrary(library, [&](Library& found) -> CUresult {
    if (pKernel == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Kernel* kernel = found.find(name);
    if (kernel == nullptr) return CUDA_ERROR_NOT_FOUND;
    *pKernel = handleOf<CUkernel>(kernel);
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuLibraryGetKernelCount(unsigned int* count, CUlibrary lib) {
  return inDriver([&]() -> CUresult {
    const auto library = Handles<Library>::all().find(lib);
    if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    library->compileOnce();  // a library that does not compile has no kernels
    *count = static_cast<unsigned>(library->kernels.size());
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuLibraryEnumerateKernels(CUkernel* kernels, unsigned int numKernels, CUlibrary lib) {
  return onLibrary(lib, [&](Library& found) -> CUresult {
    if (kernels == nullptr || numKernels == 0) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t i = 0; i < numKernels && i < found.kernels.size(); ++i)
      kernels[i] = handleOf<CUkernel>(found.kernels[i].get());
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuLibraryGetModule(CUmodule* pMod, CUlibrary library) {
  return inContext([&](Context& context) {
    return onLibrary(library, [&](Library& found) -> CUresult {
      if (pMod == nullptr) return CUDA_ERROR_INVALID_VALUE;
      std::shared_ptr<Module> module;
      const CUresult status = moduleOf(found, context, module);
      if (status == CUDA_SUCCESS) *pMod = handleOf<CUmodule>(module.get());
      return status;
    });
  });
}

DRIVER_CALL cuLibraryGetGlobal(CUdeviceptr* dptr, size_t* bytes, CUlibrary library,
                               const char* name) {
  return inContext([&](Context& context) {
    return onLibrary(library, [&](Library& found) -> CUresult {
      if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
      return variableOf(found, context, name, dptr, bytes);
    });
  });
}

DRIVER_CALL cuLibraryGetManaged(CUdeviceptr* dptr, size_t* bytes, CUlibrary library,
                                const char* name) {
  return onLibrary(library, [&](Library& found) -> CUresult {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return managedOf(found, name, dptr, bytes);
  });
}

DRIVER_CALL cuKernelGetFunction(CUfunction* pFunc, CUkernel kernel) {
  return inContext([&](Context& context) {
    return onKernel(kernel, [&](Kernel& found) -> CUresult {
      if (pFunc == nullptr) return CUDA_ERROR_INVALID_VALUE;
      std::shared_ptr<Function> function;
      const CUresult status = functionOf(found, context, function);
      if (status == CUDA_SUCCESS) *pFunc = handleOf<CUfunction>(function.get());
      return status;
    });
  });
}

DRIVER_CALL cuKernelGetLibrary(CUlibrary* pLib, CUkernel kernel) {
  return onKernel(kernel, [&](Kernel& found) -> CUresult {
    if (pLib == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *pLib = handleOf<CUlibrary>(&found.library);
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuKernelGetName(const char** name, CUkernel hfunc) {
  return onKernel(hfunc, [&](Kernel& found) -> CUresult {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *name = found.info.name.c_str();
    return CUDA_SUCCESS;
  });
}
