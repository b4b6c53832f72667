#include "nvml/page.h"

#include "test/unit/program.h"

TEST_CASE("a page is read: versions, memory, processes and answers of each GPU") {
  const auto page = nvml::parsePage(
      "nvidia-virtual-gpus 1\nsystem nvmlX 0 616263\ngpu GPU-a\nmemory 1000 10\nbusy 7\n"
      "process 42 10 6\nprocess 43 0 1\nanswer nvmlY/2 0 01000000\nanswer nvmlZ 17 \ngpu GPU-b\n");
  REQUIRE(page.has_value());
  CHECK(!page->pending);
  CHECK(page->system.at("nvmlX").bytes == "abc");
  REQUIRE(page->gpus.size() == 2);
  const nvml::Gpu& gpu = page->gpus[0];
  CHECK(gpu.uuid == "GPU-a");
  CHECK(gpu.total == 1000);
  CHECK(gpu.used == 10);
  CHECK(gpu.busy == 7);
  REQUIRE(gpu.processes.size() == 2);
  CHECK(gpu.processes[0].pid == 42);
  CHECK(gpu.processes[0].memory == 10);
  CHECK(gpu.processes[1].busy == 1);
  CHECK(gpu.answers.at("nvmlY/2").bytes == std::string("\1\0\0\0", 4));
  CHECK(gpu.answers.at("nvmlZ").status == 17);
  CHECK(page->gpus[1].uuid == "GPU-b");
}

TEST_CASE("words of a later gpu-proxy are ignored, other versions and other files are refused") {
  const auto later = nvml::parsePage("nvidia-virtual-gpus 1\nfuture 1 2 3\ngpu GPU-a\nfuture\n");
  REQUIRE(later.has_value());
  CHECK(later->gpus.size() == 1);
  CHECK(!nvml::parsePage("nvidia-virtual-gpus 2\ngpu GPU-a\n").has_value());
  CHECK(!nvml::parsePage("").has_value());
  CHECK(!nvml::parsePage("something else\n").has_value());
  CHECK(nvml::parsePage("nvidia-virtual-gpus 1\npending\n")->pending);
}

TEST_CASE("broken lines give zeros, and no crash") {
  const auto page = nvml::parsePage(
      "nvidia-virtual-gpus 1\nmemory 1 2\ngpu\nmemory\nbusy x\nprocess\nanswer\nanswer a\n"
      "answer b 0 zz1\nsystem\n");
  REQUIRE(page.has_value());
  REQUIRE(page->gpus.size() == 1);
  CHECK(page->gpus[0].total == 0);
}

TEST_CASE("a page tells the driver's CUDA version, unless it is damaged") {
  const auto versionOf = [](const std::string& rest) {
    const auto page = nvml::parsePage("nvidia-virtual-gpus 1\n" + rest);
    return page ? nvml::cudaVersionOf(*page) : std::nullopt;
  };
  const std::string call = "system nvmlSystemGetCudaDriverVersion_v2 ";
  CHECK(versionOf(call + "0 082f0000\ngpu GPU-1\n") == 12040);
  CHECK(versionOf(call + "0 c8320000\n") == 13000);
  for (const char* rest : {"0 082f\n", "0 08zz0000\n", "0 00000000\n", "0 ffffffff\n", "3 \n", ""})
    CHECK_FALSE(versionOf(call + rest).has_value());
  CHECK_FALSE(versionOf("pending\n").has_value());
}
