// Loads and unloads programs. The calls are in module.cpp and library.cpp.
#include <algorithm>
#include <cstdlib>

#include "native/simulator/context.h"
#include "native/simulator/handles.h"
#include "native/simulator/library.h"
#include "native/simulator/memory.h"
#include "native/simulator/module.h"
#include "native/simulator/texture_reference.h"

namespace simulator {
namespace {

bool placeVariables(Module& module) {
  const auto variables = module.program->variables();
  for (std::size_t i = 0; i < variables.size(); ++i) {
    if (variables[i].managed && module.library != nullptr) {
      module.variables.push_back(module.library->managed[i]);
      module.program->bindInitialised(i, module.variables.back());
      continue;
    }
    const std::uint64_t address =
        allocate(module.context, std::max<std::uint64_t>(variables[i].size, 1),
                 variables[i].managed ? MemoryKind::managedVariable : MemoryKind::module);
    if (address == 0) return false;
    module.variables.push_back(address);
    module.program->bind(i, address);
  }
  module.program->initialise();
  return true;
}

}  // namespace

Function* Module::find(std::string_view name) const {
  const auto found = std::find_if(functions.begin(), functions.end(), [&](const auto& function) {
    return function->info.name == name;
  });
  return found == functions.end() ? nullptr : found->get();
}

int Module::variable(std::string_view name) const {
  const auto all = program->variables();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const VariableInfo& info) { return info.name == name; });
  return found == all.end() ? -1 : static_cast<int>(found - all.begin());
}

CUresult load(Context& context, std::shared_ptr<Program> program, int ptxVersion,
              std::shared_ptr<Library> library, std::shared_ptr<Module>& module) {
  auto loaded = std::make_shared<Module>(context);
  loaded->library = std::move(library);
  loaded->ptxVersion = ptxVersion;
  loaded->program = std::move(program);
  // The real driver, too, takes the memory for launches by kernels when it loads such code.
  const bool prepared = !loaded->program->launchesKernels() || context.launchBuffers.prepare();
  if (!prepared || !placeVariables(*loaded)) {
    unload(*loaded);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const auto kernels = loaded->program->kernels();
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    loaded->functions.push_back(std::unique_ptr<Function>(new Function{*loaded, i, kernels[i]}));
    Handles<Function>::all().add(std::shared_ptr<Function>(loaded, loaded->functions.back().get()));
  }
  Handles<Module>::all().add(loaded);
  {
    const std::lock_guard lock(context.mutex);
    context.modules.insert(loaded);
  }
  module = std::move(loaded);
  return CUDA_SUCCESS;
}

void unload(Module& module) {
  const auto self = Handles<Module>::all().remove(&module);
  for (const auto& function : module.functions) Handles<Function>::all().remove(function.get());
  forgetReferences(module);
  for (const std::uint64_t address : module.variables) {
    // A managed variable of a library has no context, and ends with the library.
    const auto owned = [](const Allocation& allocation) { return allocation.context != nullptr; };
    if (const auto taken = Allocations::all().take(address, owned)) release(*taken);
  }
  module.variables.clear();
  const std::lock_guard lock(module.context.mutex);
  module.context.modules.erase(self);
}

int ptxVersionOf(const std::vector<std::string>& texts) {
  if (texts.empty()) return 0;
  const std::size_t target = texts[0].find(".target");
  const std::size_t number = target == std::string::npos ? target : texts[0].find("sm_", target);
  return number == std::string::npos ? 0 : std::atoi(texts[0].c_str() + number + 3);
}

CUresult findFunction(Context& context, CUfunction handle, std::shared_ptr<Function>& function) {
  function = Handles<Function>::all().find(handle);
  if (function != nullptr) return CUDA_SUCCESS;
  const auto kernel = Handles<Kernel>::all().find(handle);
  return kernel == nullptr ? CUDA_ERROR_INVALID_HANDLE : functionOf(*kernel, context, function);
}

}  // namespace simulator
