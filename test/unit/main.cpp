// main() of every C++ test program.
#define DOCTEST_CONFIG_IMPLEMENT
#include <atomic>
#include <cstdlib>
#include <vector>

#include "test/unit/program.h"

namespace unit {
namespace {

/// The exit status of a test that the machine cannot run (ctest's SKIP_RETURN_CODE).
constexpr int kSkipped = 77;

std::vector<const char*> words;
std::atomic<int> failed{0};
std::atomic<bool> skipped{false};
bool ranNothing = false;

/// Counts what doctest tells its reporters.
struct Listener final : doctest::IReporter {
  explicit Listener(const doctest::ContextOptions&) {}
  void test_run_end(const doctest::TestRunStats& stats) override {
    ranNothing = stats.numTestCasesPassingFilters == 0;
  }
  void log_assert(const doctest::AssertData& check) override { failed += check.m_failed ? 1 : 0; }
  void log_message(const doctest::MessageData& message) override {
    failed += message.m_severity != doctest::assertType::is_warn ? 1 : 0;
  }
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_case_start(const doctest::TestCaseData&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};
REGISTER_LISTENER("unit", 1, Listener);

}  // namespace

const char* optionalArgument(std::size_t index) {
  return index < words.size() ? words[index] : nullptr;
}

const char* argument(std::size_t index, std::string_view what) {
  if (const char* word = optionalArgument(index)) return word;
  std::cerr << "Argument " << index + 1 << " is missing: " << what << ".\n";
  std::exit(2);
}

void skip(std::string_view reason) {
  std::cout << "skipped: " << reason << '\n';
  skipped = true;
}

int failedChecks() { return failed; }

}  // namespace unit

int main(int count, char** arguments) {
  for (int i = 1; i < count; ++i)
    if (arguments[i][0] != '-') unit::words.push_back(arguments[i]);
  doctest::Context context(count, arguments);
  const int status = context.run();
  if (context.shouldExit() || status != 0) return status;
  if (unit::ranNothing) return std::cerr << "No test case matches the filters.\n", 2;
  const int result = unit::skipped ? unit::kSkipped : 0;
#ifdef __SANITIZE_ADDRESS__
  // LeakSanitizer may crash on the storage of threads that a driver still has.
  if (!unit::words.empty()) std::cout.flush(), std::_Exit(result);
#endif
  return result;
}

#ifdef __SANITIZE_THREAD__
/// - The C library reuses the stack and thread-local storage of a detached thread that has ended.
///   It orders that by locks that ThreadSanitizer does not see.
/// - The work of a hostile program races for the memory of the simulated GPU.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_suppressions() {
  return "race:_dl_deallocate_tls\nrace:simulator::run(\n";
}

/// Tests fork children that start threads.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options() {
  return "die_after_fork=0";
}
#endif
