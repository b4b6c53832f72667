// Runs every form of the table on a driver and compares the results with the reference.
//   simulator_instructions_test DRIVER          all forms, and spellings that a driver must refuse
//   simulator_instructions_test DRIVER PREFIX   forms whose names begin with PREFIX
//   simulator_instructions_test DRIVER all      all forms, without other spellings
#include <cstring>
#include <map>

#include "native/simulator/test/driver_test.h"
#include "native/simulator/test/instructions/kernel.h"
#include "native/simulator/test/instructions/operands.h"

namespace instructions {
namespace {

constexpr std::size_t kFormsInModule = 64, kThreads = 256, kShown = 3;

struct Totals {
  std::size_t forms = 0, results = 0, wrongResults = 0, wrongForms = 0, refused = 0, illegal = 0,
              accepted = 0;
};

/// Operands of one signature, on the host and on the device.
struct Inputs {
  std::vector<Sources> values;
  CUdeviceptr device = 0;
};

class Runner {
 public:
  void run(std::span<const Form> forms) {
    for (std::size_t at = 0; at < forms.size(); at += kFormsInModule) {
      runModule(forms.subspan(at, std::min(kFormsInModule, forms.size() - at)));
    }
  }
  /// Each spelling by itself must be refused.
  void refuse(const Forms& forms) {
    for (const Form& form : forms) {
      CUmodule module = nullptr;
      const CUresult result = DRIVER(cuModuleLoadData)(&module, bareModuleFor({&form, 1}).c_str());
      ++totals_.illegal;
      if (result == CUDA_ERROR_INVALID_PTX) continue;
      ++totals_.accepted;
      FAIL_CHECK("accepted: " << form.name << ": " << resultName(result));
      if (module) OK(DRIVER(cuModuleUnload)(module));
    }
  }
  const Totals& totals() const { return totals_; }

 private:
  CUmodule load(std::span<const Form> forms, std::string& log) {
    char buffer[2048] = {};
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {buffer, reinterpret_cast<void*>(sizeof buffer - 1)};
    CUmodule module = nullptr;
    const CUresult result =
        DRIVER(cuModuleLoadDataEx)(&module, moduleFor(forms).c_str(), 2, options, values);
    log = result == CUDA_SUCCESS ? "" : resultName(result) + ": " + buffer;
    return result == CUDA_SUCCESS ? module : nullptr;
  }

  /// A module that is refused is loaded form by form, so that the others still run.
  void runModule(std::span<const Form> forms) {
    std::string log;
    if (CUmodule module = load(forms, log)) {
      for (std::size_t i = 0; i < forms.size(); ++i) runForm(module, i, forms[i]);
      OK(DRIVER(cuModuleUnload)(module));
      return;
    }
    if (forms.size() > 1) {
      runModule(forms.first(forms.size() / 2));
      return runModule(forms.subspan(forms.size() / 2));
    }
    ++totals_.refused;
    FAIL_CHECK("refused: " << forms[0].name << ": " << log);
  }

  const Inputs& inputsFor(const std::vector<Kind>& kinds) {
    Inputs& inputs = inputs_[kinds];
    if (!inputs.values.empty()) return inputs;
    inputs.values = sourcesFor(kinds);
    const std::size_t bytes = inputs.values.size() * sizeof(Sources);
    OK(DRIVER(cuMemAlloc_v2)(&inputs.device, bytes));
    OK(DRIVER(cuMemcpyHtoD_v2)(inputs.device, inputs.values.data(), bytes));
    return inputs;
  }

  CUdeviceptr resultsOf(std::size_t bytes) {
    if (bytes > resultBytes_) {
      if (results_) OK(DRIVER(cuMemFree_v2)(results_));
      OK(DRIVER(cuMemAlloc_v2)(&results_, bytes));
      resultBytes_ = bytes;
    }
    OK(DRIVER(cuMemsetD8_v2)(results_, 0, bytes));
    return results_;
  }

  void runForm(CUmodule module, std::size_t index, const Form& form) {
    const Inputs& inputs = inputsFor(form.sources);
    const std::size_t count = inputs.values.size(), bytes = count * kWordsWritten * sizeof(u64);
    CUfunction function = nullptr;
    OK(DRIVER(cuModuleGetFunction)(&function, module, ("f" + std::to_string(index)).c_str()));
    CUdeviceptr results = resultsOf(bytes), sources = inputs.device;
    u64 number = kNumber;
    void* parameters[] = {&results, &sources, &number};
    OK(DRIVER(cuLaunchKernel)(function, static_cast<unsigned>(count / kThreads), 1, 1, kThreads, 1,
                              1, 0, nullptr, parameters, nullptr));
    std::vector<u64> got(count * kWordsWritten);
    const CUresult result = DRIVER(cuMemcpyDtoH_v2)(got.data(), results, bytes);
    ++totals_.forms;
    CAPTURE(form.name);
    REQUIRE(result == CUDA_SUCCESS);  // else the context is lost
    compare(form, inputs.values, got);
  }

  /// What every thread has to find. `defined` says whether PTX defines it.
  static void expect(const Form& form, const std::vector<Sources>& sources,
                     std::vector<std::array<u64, 2>>& expected, std::vector<bool>& defined) {
    for (std::size_t i = 0; !form.warp && i < sources.size(); ++i)
      form.reference(sources[i].data(), expected[i].data());
    for (std::size_t first = 0; form.warp && first < sources.size(); first += 32) {
      u64 operands[32][4], results[32][2] = {};
      std::memcpy(operands, sources[first].data(), sizeof operands);
      const std::uint32_t lanes = form.warp(operands, results);
      for (std::size_t lane = 0; lane < 32; ++lane) {
        expected[first + lane] = {results[lane][0], results[lane][1]};
        defined[first + lane] = lanes >> lane & 1;
      }
    }
  }

  void compare(const Form& form, const std::vector<Sources>& sources, const std::vector<u64>& got) {
    std::size_t wrong = 0;
    std::vector<std::array<u64, 2>> all(sources.size());
    std::vector<bool> defined(sources.size(), true);
    expect(form, sources, all, defined);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const std::array<u64, 2>& expected = all[i];
      if (!defined[i]) continue;
      for (std::size_t r = 0; r < form.results.size(); ++r) {
        const unsigned bits = form.results[r] == Kind::Pred ? 1 : registerBits(form.results[r]);
        const u64 keep = bits == 64 ? ~u64{0} : (u64{1} << bits) - 1;
        for (unsigned guarded = 0; guarded < (form.hasGuardedCopy() ? 2 : 1); ++guarded) {
          const u64 value = got[i * kWordsWritten + 2 * guarded + r] & keep;
          const bool written = !guarded || i % 2;
          const u64 wanted = (written                         ? expected[r]
                              : form.results[r] == Kind::Pred ? 0
                                                              : kSentinel) &
                             keep;
          ++totals_.results;
          if (value == wanted ||
              (written && r == 0 && form.check && form.check(sources[i].data(), wanted, value)))
            continue;
          if (wrong++ < kShown) show(form, sources[i], r, guarded, wanted, value);
        }
      }
    }
    totals_.wrongResults += wrong;
    totals_.wrongForms += wrong != 0;
    CHECK(wrong == 0);
  }

  static void show(const Form& form, const Sources& s, std::size_t result, bool guarded, u64 wanted,
                   u64 got) {
    std::printf("wrong: %s%s%s: operands", form.name.c_str(), form.remark.empty() ? "" : ", ",
                form.remark.c_str());
    for (std::size_t i = 0; i < form.sources.size(); ++i)
      std::printf(" 0x%llx", static_cast<unsigned long long>(s[i]));
    std::printf(": result %zu%s is 0x%llx, expected 0x%llx\n", result, guarded ? ", guarded," : "",
                static_cast<unsigned long long>(got), static_cast<unsigned long long>(wanted));
  }

  std::map<std::vector<Kind>, Inputs> inputs_;
  CUdeviceptr results_ = 0;
  std::size_t resultBytes_ = 0;
  Totals totals_;
};

TEST_CASE("every form gives the result of the reference") {
  const char* given = unit::optionalArgument(1);
  const std::string only = given == nullptr ? "" : given;
  Forms forms = allForms();
  if (only != "all")
    std::erase_if(forms, [&](const Form& form) { return !form.name.starts_with(only); });
  usePrimaryContext();
  Runner runner;
  runner.run(forms);
  if (only.empty()) runner.refuse(refusedForms());
  const Totals& t = runner.totals();
  std::printf("%zu forms, %zu results: %zu wrong results in %zu forms, %zu forms refused\n",
              t.forms, t.results, t.wrongResults, t.wrongForms, t.refused);
  std::printf("%zu spellings that are no PTX, %zu of them accepted\n", t.illegal, t.accepted);
}

}  // namespace
}  // namespace instructions
