#include "native/worker/options.h"

#include "wire/test/check.h"

namespace {

bool parse(std::vector<std::string> arguments, worker::Options& options, std::string& sentence) {
  std::vector<char*> pointers = {const_cast<char*>("nvidia-virtual-worker")};
  for (auto& argument : arguments) pointers.push_back(argument.data());
  return worker::parse(static_cast<int>(pointers.size()), pointers.data(), options, sentence);
}

}  // namespace

int main() {
  worker::Options options;
  std::string sentence;
  CHECK(parse({"--driver", "libcuda.so.1", "--memory-limit", "1024", "--quota", "/q", "--quota-slot", "7", "--gpu", "0", "--gpu", "GPU-1",
               "--arbiter", "/a"},
              options, sentence));
  CHECK(options.driver == "libcuda.so.1" && options.memoryLimit == 1024 && options.quota == "/q" && options.quotaSlot == 7 &&
        options.gpus.size() == 2 && options.arbiter == "/a");
  for (const auto& wrong : {std::vector<std::string>{"--memory-limit", "1k"}, {"--driver"}, {"--color", "red"}, {"--quota-slot", "-1"}}) {
    worker::Options unused;
    sentence.clear();
    CHECK(!parse(wrong, unused, sentence));
    CHECK(sentence.find(wrong.front()) != std::string::npos);
  }
  worker::Options unused;
  sentence.clear();
  CHECK(!parse({}, unused, sentence) && sentence.find("--driver") != std::string::npos);
  return wire::test::checkedResult();
}
