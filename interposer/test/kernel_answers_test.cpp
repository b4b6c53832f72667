// What the driver has said about a kernel holds for the settings that it was said for, whenever
// they are so, and for no others.
#include "interposer/code/kernel_answers.h"

#include "wire/test/check.h"

namespace {

using interposer::KernelAnswers;
using interposer::LaunchShape;
using interposer::Setting;

constexpr std::uint64_t kKernel = 1, kFunction = 2;

Setting shared(int bytes, std::uint64_t kernel = kKernel, CUdevice device = 0) {
  return {kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, device, bytes};
}
Setting carveout(int percent) {
  return {kKernel, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 0, percent};
}

struct Answers : KernelAnswers {
  static LaunchShape shape(unsigned threads, unsigned bytes) { return {{threads, 1, 1}, bytes}; }
  bool acceptedLaunch(unsigned threads, unsigned bytes = 0) {
    return accepted(digestOf(shape(threads, bytes)));
  }
  void acceptLaunch(unsigned threads, unsigned bytes = 0) {
    accept(digestOf(shape(threads, bytes)));
  }
};

void testSettingComesBack() {
  Answers answers;
  CHECK(!answers.isSet(shared(1)) && !answers.wasSet(shared(1)));
  for (const int bytes : {1, 2}) {
    answers.set(shared(bytes));
    CHECK(answers.isSet(shared(bytes)) && !answers.isSet(shared(3 - bytes)) &&
          answers.wasSet(shared(1)));
  }
  CHECK(answers.wasSet(shared(2)) && !answers.wasSet(shared(3)));
  const Setting elsewhere = shared(2, kKernel, 1);
  CHECK(!answers.isSet(elsewhere) && !answers.wasSet(elsewhere));
}

/// The driver judged it beside the other settings of that time.
void testBesideOthers() {
  Answers answers;
  answers.set(shared(1));
  answers.set(carveout(50));
  CHECK(answers.isSet(shared(1)) && !answers.wasSet(shared(2)) && !answers.wasSet(carveout(20)));
  answers.set(carveout(20));
  CHECK(answers.wasSet(carveout(50)));
  answers.set(shared(2));
  CHECK(!answers.wasSet(carveout(50)));
}

/// A kernel and its function in a context share what either of them sets, so the last of both
/// counts.
void testFunctionOfKernel() {
  Answers answers;
  answers.set(shared(1));
  answers.set(shared(2, kFunction));
  CHECK(!answers.isSet(shared(1)) && answers.isSet(shared(2, kFunction)) &&
        !answers.isSet(shared(2)));
  answers.set(shared(1));
  CHECK(answers.isSet(shared(1)) && !answers.isSet(shared(2, kFunction)) &&
        answers.wasSet(shared(2, kFunction)));
}

void testContexts() {
  Answers answers;
  const auto in = [&](std::uint64_t context) {
    return answers.digestOf({.block = {32, 1, 1}, .context = context});
  };
  answers.accept(in(1));
  CHECK(answers.accepted(in(1)) && !answers.accepted(in(2)));
}

void testLaunches() {
  Answers answers;
  CHECK(!answers.acceptedLaunch(32));
  answers.acceptLaunch(32);
  CHECK(answers.acceptedLaunch(32) && !answers.acceptedLaunch(64) &&
        !answers.acceptedLaunch(32, 8));
  answers.set(shared(100));
  CHECK(!answers.acceptedLaunch(32));
  answers.acceptLaunch(32, 100);
  CHECK(answers.acceptedLaunch(32, 100));
  answers.set(shared(50));
  CHECK(!answers.acceptedLaunch(32, 100));
  answers.set(shared(100));
  CHECK(answers.acceptedLaunch(32, 100) && !answers.acceptedLaunch(32));
}

/// A network has a launch of one kernel for each of its layers.
void testManyLaunches() {
  Answers answers;
  for (unsigned threads = 1; threads <= 500; ++threads) answers.acceptLaunch(threads);
  for (unsigned threads = 1; threads <= 500; ++threads) CHECK(answers.acceptedLaunch(threads));
}

void testNumbers() {
  Answers answers;
  const auto known = [&](std::uint64_t what) {
    int number = -1;
    return answers.find({what}, &number) ? number : -1;
  };
  CHECK(known(1) == -1);
  answers.remember({1}, 10);
  answers.remember({2}, 20);
  CHECK(known(1) == 10 && known(2) == 20 && known(3) == -1);
  answers.set(shared(1));
  CHECK(known(1) == -1);
  answers.remember({1}, 11);
  answers.set(shared(2));
  CHECK(known(1) == -1);
  answers.set(shared(1));
  CHECK(known(1) == 11 && known(2) == -1);
}

/// Which of two devices, or of two attributes, was set first makes no difference.
void testOrder() {
  Answers answers;
  const auto on = [](CUdevice device, int bytes) { return shared(bytes, kKernel, device); };
  for (int round = 0; round < 3; ++round) {
    for (const int bytes : {1, 2}) {
      for (const CUdevice device : {0, 1, 2}) {
        CHECK(round < 2 ||
              (!answers.isSet(on(device, bytes)) && answers.wasSet(on(device, bytes))));
        answers.set(on(device, bytes));
      }
      CHECK(round < 2 || answers.wasSet(carveout(bytes)));
      answers.set(carveout(bytes));
    }
  }
  answers.set(on(1, 1));  // before device 0 for once
  CHECK(answers.wasSet(on(0, 1)));
}

/// As many as are kept, in turns, are all known from the second round on.
void testManySettings() {
  Answers answers;
  for (int round = 0; round < 3; ++round) {
    for (int bytes = 0; bytes < 64; ++bytes) {
      CHECK(answers.wasSet(shared(bytes)) == (round > 0));
      answers.set(shared(bytes));
    }
  }
}

/// Every module of an autotuner has a kernel of the same name.
void testManyOfOneName() {
  Answers answers;
  for (std::uint64_t kernel = 1; kernel <= 2'000; ++kernel) {
    answers.set(shared(1, kernel));
    CHECK(answers.isSet(shared(1, kernel)));
  }
  CHECK(!answers.isSet(shared(1, 1)) && !answers.wasSet(shared(1, 1)));
}

/// The driver judged a launch by what was set when it came.
void testSetDuringLaunch() {
  Answers answers;
  const KernelAnswers::Digest before = answers.digestOf(Answers::shape(32, 100));
  answers.set(shared(50));
  answers.accept(before);
  CHECK(!answers.acceptedLaunch(32, 100));
}

void testNeverTheSameAgain() {
  Answers answers;
  for (int bytes = 0; bytes < 10'000; ++bytes) {
    answers.set(shared(bytes));
    CHECK(answers.isSet(shared(bytes)) && !answers.acceptedLaunch(32));
    answers.acceptLaunch(32);
    CHECK(answers.acceptedLaunch(32));
  }
}

void testForget() {
  Answers answers;
  answers.set(shared(1));
  answers.acceptLaunch(32);
  answers.forget();
  CHECK(!answers.isSet(shared(1)) && !answers.wasSet(shared(1)) && !answers.acceptedLaunch(32));
  answers.set(shared(1));
  CHECK(!answers.acceptedLaunch(32));
}

}  // namespace

int main() {
  testSettingComesBack();
  testBesideOthers();
  testFunctionOfKernel();
  testContexts();
  testLaunches();
  testManyLaunches();
  testNumbers();
  testOrder();
  testManySettings();
  testManyOfOneName();
  testSetDuringLaunch();
  testNeverTheSameAgain();
  testForget();
  return wire::test::checkedResult();
}
