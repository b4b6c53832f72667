// An answer of the driver about a kernel holds for the settings at that time, whenever they are the
// same again, and for no others.
#include "interposer/code/kernel_answers.h"

#include <doctest/doctest.h>

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

TEST_CASE("a value that was set before is known when it is set again") {
  Answers answers;
  CHECK(!answers.isSet(shared(1)));
  CHECK(!answers.wasSet(shared(1)));
  for (const int bytes : {1, 2}) {
    answers.set(shared(bytes));
    CHECK(answers.isSet(shared(bytes)));
    CHECK(!answers.isSet(shared(3 - bytes)));
    CHECK(answers.wasSet(shared(1)));
  }
  CHECK(answers.wasSet(shared(2)));
  CHECK(!answers.wasSet(shared(3)));
  const Setting elsewhere = shared(2, kKernel, 1);
  CHECK(!answers.isSet(elsewhere));
  CHECK(!answers.wasSet(elsewhere));
}

TEST_CASE("a setting holds beside the other settings of its time") {
  Answers answers;
  answers.set(shared(1));
  answers.set(carveout(50));
  CHECK(answers.isSet(shared(1)));
  CHECK(!answers.wasSet(shared(2)));
  CHECK(!answers.wasSet(carveout(20)));
  answers.set(carveout(20));
  CHECK(answers.wasSet(carveout(50)));
  answers.set(shared(2));
  CHECK(!answers.wasSet(carveout(50)));
}

// They share what either of them sets in a context.
TEST_CASE("a kernel and its function share the last setting of both") {
  Answers answers;
  answers.set(shared(1));
  answers.set(shared(2, kFunction));
  CHECK(!answers.isSet(shared(1)));
  CHECK(answers.isSet(shared(2, kFunction)));
  CHECK(!answers.isSet(shared(2)));
  answers.set(shared(1));
  CHECK(answers.isSet(shared(1)));
  CHECK(!answers.isSet(shared(2, kFunction)));
  CHECK(answers.wasSet(shared(2, kFunction)));
}

TEST_CASE("an accepted launch holds in its context") {
  Answers answers;
  const auto in = [&](std::uint64_t context) {
    return answers.digestOf({.block = {32, 1, 1}, .context = context});
  };
  answers.accept(in(1));
  CHECK(answers.accepted(in(1)));
  CHECK(!answers.accepted(in(2)));
}

TEST_CASE("an accepted launch holds for the settings of its time") {
  Answers answers;
  CHECK(!answers.acceptedLaunch(32));
  answers.acceptLaunch(32);
  CHECK(answers.acceptedLaunch(32));
  CHECK(!answers.acceptedLaunch(64));
  CHECK(!answers.acceptedLaunch(32, 8));
  answers.set(shared(100));
  CHECK(!answers.acceptedLaunch(32));
  answers.acceptLaunch(32, 100);
  CHECK(answers.acceptedLaunch(32, 100));
  answers.set(shared(50));
  CHECK(!answers.acceptedLaunch(32, 100));
  answers.set(shared(100));
  CHECK(answers.acceptedLaunch(32, 100));
  CHECK(!answers.acceptedLaunch(32));
}

// A network has a launch of one kernel for each of its layers.
TEST_CASE("500 launch shapes of one kernel are known") {
  Answers answers;
  for (unsigned threads = 1; threads <= 500; ++threads) answers.acceptLaunch(threads);
  for (unsigned threads = 1; threads <= 500; ++threads) CHECK(answers.acceptedLaunch(threads));
}

TEST_CASE("a number of the driver holds for the settings of its time") {
  Answers answers;
  const auto known = [&](std::uint64_t what) {
    int number = -1;
    return answers.find({what}, &number) ? number : -1;
  };
  CHECK(known(1) == -1);
  answers.remember({1}, 10);
  answers.remember({2}, 20);
  CHECK(known(1) == 10);
  CHECK(known(2) == 20);
  CHECK(known(3) == -1);
  answers.set(shared(1));
  CHECK(known(1) == -1);
  answers.remember({1}, 11);
  answers.set(shared(2));
  CHECK(known(1) == -1);
  answers.set(shared(1));
  CHECK(known(1) == 11);
  CHECK(known(2) == -1);
}

TEST_CASE("the order in which devices and attributes are set makes no difference") {
  Answers answers;
  const auto on = [](CUdevice device, int bytes) { return shared(bytes, kKernel, device); };
  for (int round = 0; round < 3; ++round) {
    for (const int bytes : {1, 2}) {
      for (const CUdevice device : {0, 1, 2}) {
        if (round == 2) {
          CHECK(!answers.isSet(on(device, bytes)));
          CHECK(answers.wasSet(on(device, bytes)));
        }
        answers.set(on(device, bytes));
      }
      if (round == 2) CHECK(answers.wasSet(carveout(bytes)));
      answers.set(carveout(bytes));
    }
  }
  answers.set(on(1, 1));  // before device 0 for once
  CHECK(answers.wasSet(on(0, 1)));
}

TEST_CASE("64 settings in turns are known from the second round on") {
  Answers answers;
  for (int round = 0; round < 3; ++round) {
    for (int bytes = 0; bytes < 64; ++bytes) {
      CHECK(answers.wasSet(shared(bytes)) == (round > 0));
      answers.set(shared(bytes));
    }
  }
}

// Every module of an autotuner has a kernel of the same name.
TEST_CASE("only the last of 2,000 kernels of one name are kept") {
  Answers answers;
  for (std::uint64_t kernel = 1; kernel <= 2'000; ++kernel) {
    answers.set(shared(1, kernel));
    CHECK(answers.isSet(shared(1, kernel)));
  }
  CHECK(!answers.isSet(shared(1, 1)));
  CHECK(!answers.wasSet(shared(1, 1)));
}

TEST_CASE("a launch is judged by the settings when it came") {
  Answers answers;
  const KernelAnswers::Digest before = answers.digestOf(Answers::shape(32, 100));
  answers.set(shared(50));
  answers.accept(before);
  CHECK(!answers.acceptedLaunch(32, 100));
}

TEST_CASE("10,000 values that never come back are each set") {
  Answers answers;
  for (int bytes = 0; bytes < 10'000; ++bytes) {
    answers.set(shared(bytes));
    CHECK(answers.isSet(shared(bytes)));
    CHECK(!answers.acceptedLaunch(32));
    answers.acceptLaunch(32);
    CHECK(answers.acceptedLaunch(32));
  }
}

TEST_CASE("nothing is known after forget()") {
  Answers answers;
  answers.set(shared(1));
  answers.acceptLaunch(32);
  answers.forget();
  CHECK(!answers.isSet(shared(1)));
  CHECK(!answers.wasSet(shared(1)));
  CHECK(!answers.acceptedLaunch(32));
  answers.set(shared(1));
  CHECK(!answers.acceptedLaunch(32));
}

}  // namespace
