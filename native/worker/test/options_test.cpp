#include "native/worker/options.h"

#include <doctest/doctest.h>

namespace {

bool parse(std::vector<std::string> arguments, worker::Options& options, std::string& sentence) {
  std::vector<char*> pointers = {const_cast<char*>("nvidia-virtual-worker")};
  for (auto& argument : arguments) pointers.push_back(argument.data());
  return worker::parse(static_cast<int>(pointers.size()), pointers.data(), options, sentence);
}

TEST_CASE("all options are parsed") {
  worker::Options options;
  std::string sentence;
  CHECK(parse({"--driver",
               "libcuda.so.1",
               "--memory-limit",
               "1024",
               "--quota",
               "/q",
               "--quota-slot",
               "7",
               "--gpu",
               "0",
               "--gpu",
               "GPU-1",
               "--context-charge",
               "5",
               "--context-memory",
               "6",
               "--figures",
               "/f",
               "--cache",
               "/c",
               "--uid",
               "65534",
               "--max-threads",
               "8",
               "--max-handles",
               "9",
               "--max-pinned",
               "10",
               "--arbiter",
               "/a"},
              options, sentence));
  CHECK(parse({"--mps-pipes", "/m", "--mps-threads", "25", "--mps-memory", "11", "--stream-memory",
               "12", "--heap-memory", "13"},
              options, sentence));
  CHECK(options.mps.pipes == "/m");
  CHECK(options.mps.threads == 25);
  CHECK(options.mps.memory == 11);
  CHECK(options.limits.streamMemory == 12);
  CHECK(options.limits.heapMemory == 13);
  CHECK(options.driver == "libcuda.so.1");
  CHECK(options.memoryLimit == 1024);
  CHECK(options.quota == "/q");
  CHECK(options.quotaSlot == 7);
  CHECK(options.gpus.size() == 2);
  CHECK(options.contextCharge == 5);
  CHECK(options.limits.contextMemory == 6);
  CHECK(options.figures == "/f");
  CHECK(options.cache == "/c");
  CHECK(options.uid == 65534u);
  CHECK(options.limits.threads == 8);
  CHECK(options.limits.handles == 9);
  CHECK(options.limits.pinned == 10);
  CHECK(options.arbiter == "/a");
  CHECK(!options.inventory);
  CHECK(!options.warm);
}

TEST_CASE("each mode is a flag") {
  worker::Options inventory;
  worker::Options warm;
  std::string sentence;
  CHECK(parse({"--inventory", "--driver", "x"}, inventory, sentence));
  CHECK(inventory.inventory);
  CHECK(inventory.driver == "x");
  CHECK(parse({"--driver", "x", "--warm"}, warm, sentence));
  CHECK(warm.warm);
  CHECK(!warm.inventory);
  CHECK(!warm.uid.has_value());
  worker::Options processes;
  CHECK(parse({"--processes", "/lib/libnvidia-ml.so.1"}, processes, sentence));
  CHECK(processes.processes == "/lib/libnvidia-ml.so.1");
}

TEST_CASE("options of a newer proxy are ignored and listed") {
  worker::Options options;
  std::string sentence;
  CHECK(parse({"--color", "red", "--driver", "x", "--fast", "--max-threads", "8", "--last"},
              options, sentence));
  CHECK(options.driver == "x");
  CHECK(options.limits.threads == 8);
  CHECK(options.unknown == std::vector<std::string>{"--color", "--fast", "--last"});
}

TEST_CASE("a wrong option is refused with a sentence") {
  for (const auto& wrong : {std::vector<std::string>{"--memory-limit", "1k"},
                            {"--driver"},
                            {"--quota-slot", "-1"},
                            {"--uid", "0"},
                            {"--uid", "-1"},
                            {"--uid", "4294967295"},
                            {"--figures", ""},
                            {"--mps-threads", "0"},
                            {"--mps-threads", "101"},
                            {"stray"},
                            {"--"}}) {
    worker::Options unused;
    std::string sentence;
    CHECK(!parse(wrong, unused, sentence));
    CHECK(sentence.find(wrong.front()) != std::string::npos);
    CHECK(sentence.find("[--max-handles N]") != std::string::npos);
  }
  worker::Options unused;
  std::string sentence;
  CHECK(!parse({}, unused, sentence));
  CHECK(sentence.find("--driver") != std::string::npos);
}

}  // namespace
