#include "native/simulator/module.h"

#include <fstream>
#include <iterator>

#include "native/simulator/context.h"
#include "native/simulator/driver_call.h"
#include "native/simulator/fatbin.h"
#include "native/simulator/fault.h"
#include "native/simulator/handles.h"
#include "native/simulator/jit_options.h"
#include "native/simulator/log.h"

namespace simulator {

CompileError compileTexts(const std::vector<std::string>& texts, std::shared_ptr<Program>& program,
                          Externs externs) {
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  CompileError error;
  program = compile(views, error, externs);
  if (program == nullptr && error.result == CUDA_SUCCESS) error.result = CUDA_ERROR_INVALID_PTX;
  return error;
}

CUresult readFile(const char* name, std::vector<char>& bytes) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::ifstream file(name, std::ios::binary);
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  bytes.assign(std::istreambuf_iterator<char>(file), {});
  bytes.push_back(0);
  return CUDA_SUCCESS;
}

}  // namespace simulator

using namespace simulator;

namespace {

CUresult loadImage(CUmodule* handle, const void* image, JitOptions options) {
  return inContext([&](Context& context) -> CUresult {
    if (handle == nullptr || image == nullptr || !options.valid()) return CUDA_ERROR_INVALID_VALUE;
    std::vector<std::string> texts;
    std::string sentence;
    CUresult status = readImage(image, texts, sentence);
    std::shared_ptr<Program> program;
    if (status == CUDA_SUCCESS) {
      const CompileError error = compileTexts(texts, program);
      status = error.result;
      sentence = error.sentence;
    }
    options.report(sentence);
    if (status != CUDA_SUCCESS) {
      logError(sentence);
      return status;
    }
    std::shared_ptr<Module> module;
    status = load(context, std::move(program), ptxVersionOf(texts), nullptr, module);
    if (status == CUDA_SUCCESS) *handle = handleOf<CUmodule>(module.get());
    return status;
  });
}

template <class Body>
CUresult withModule(CUmodule handle, Body&& body) {
  const auto module = Handles<Module>::all().find(handle);
  return module == nullptr ? CUDA_ERROR_INVALID_HANDLE : body(*module);
}

template <class Body>
CUresult onModule(CUmodule handle, Body&& body) {
  return withoutContext([&] { return withModule(handle, body); });
}

}  // namespace

DRIVER_CALL cuModuleLoad(CUmodule* module, const char* fname) {
  return inContext([&](Context&) -> CUresult {
    std::vector<char> bytes;
    const CUresult status = readFile(fname, bytes);
    return status == CUDA_SUCCESS ? loadImage(module, bytes.data(), JitOptions(0, nullptr, nullptr))
                                  : status;
  });
}

DRIVER_CALL cuModuleLoadData(CUmodule* module, const void* image) {
  return loadImage(module, image, JitOptions(0, nullptr, nullptr));
}

DRIVER_CALL cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int numOptions,
                               CUjit_option* options, void** optionValues) {
  return loadImage(module, image, JitOptions(numOptions, options, optionValues));
}

DRIVER_CALL cuModuleLoadFatBinary(CUmodule* module, const void* fatCubin) {
  return loadImage(module, fatCubin, JitOptions(0, nullptr, nullptr));
}

DRIVER_CALL cuModuleUnload(CUmodule hmod) {
  return withoutContext([&] {
    return withModule(hmod, [](Module& module) -> CUresult {
      if (module.library != nullptr) return CUDA_ERROR_NOT_PERMITTED;
      synchronize(module.context);
      if (fault() != CUDA_SUCCESS) return fault();
      unload(module);
      return CUDA_SUCCESS;
    });
  });
}

DRIVER_CALL cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  return inDriver([&]() -> CUresult {
    if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const char* wish = std::getenv("CUDA_MODULE_LOADING");
    *mode = wish != nullptr && std::string_view(wish) == "EAGER" ? CU_MODULE_EAGER_LOADING
                                                                 : CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuModuleGetFunction(CUfunction* hfunc, CUmodule hmod, const char* name) {
  return onModule(hmod, [&](Module& module) -> CUresult {
    if (hfunc == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Function* function = module.find(name);
    if (function == nullptr) return CUDA_ERROR_NOT_FOUND;
    *hfunc = handleOf<CUfunction>(function);
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuModuleGetFunctionCount(unsigned int* count, CUmodule mod) {
  return onModule(mod, [&](Module& module) -> CUresult {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<unsigned>(module.functions.size());
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuModuleEnumerateFunctions(CUfunction* functions, unsigned int numFunctions,
                                       CUmodule mod) {
  return onModule(mod, [&](Module& module) -> CUresult {
    if (functions == nullptr || numFunctions == 0) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t i = 0; i < numFunctions && i < module.functions.size(); ++i) {
      functions[i] = handleOf<CUfunction>(module.functions[i].get());
    }
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuModuleGetGlobal_v2(CUdeviceptr* dptr, size_t* bytes, CUmodule hmod,
                                 const char* name) {
  return onModule(hmod, [&](Module& module) -> CUresult {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const int index = module.variable(name);
    if (index < 0) return CUDA_ERROR_NOT_FOUND;
    if (dptr != nullptr) *dptr = module.variables[index];
    if (bytes != nullptr) *bytes = module.program->variables()[index].size;
    return CUDA_SUCCESS;
  });
}
