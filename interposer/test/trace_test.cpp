// Traces: the arguments of calls as text, lines of the file, and the summary.
#include <doctest/doctest.h>
#include <sys/mman.h>

#include <cstring>
#include <map>
#include <string>

#include "cuda_abi.h"
#include "interposer/trace/arguments.h"
#include "interposer/trace/demangled.h"
#include "interposer/trace/events.h"
#include "interposer/trace/summary.h"
#include "interposer/trace/traced.h"

namespace interposer::trace {

namespace {

const CallFacts& factsOf(std::string_view name) {
  for (std::size_t i = 0; i < kTracedCalls; ++i)
    if (textAt(kCalls[i].name) == name) return kCalls[i];
  FAIL("no such call");
  return kCalls[0];
}

std::string noName(wire::HandleKind, std::uint64_t) { return {}; }

template <class... Arguments>
std::map<std::string, std::string> described(std::string_view name, bool succeeded,
                                             const Arguments&... arguments) {
  const std::uint64_t words[] = {word(arguments)...};
  std::map<std::string, std::string> texts;
  for (const Argument& each : describeArguments(factsOf(name), words, succeeded, noName))
    texts[std::string(each.name)] = each.value;
  return texts;
}

/// A page behind which no memory is.
char* lastPage() {
  constexpr std::size_t kPage = 4096;
  auto* pages = static_cast<char*>(
      mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  munmap(pages + kPage, kPage);
  return pages;
}

}  // namespace

TEST_CASE("what a successful call gave is shown, and what a failed one did not give is not") {
  CUdeviceptr address = 0x2b0000000000;
  auto texts = described("cuMemAlloc_v2", true, &address, std::size_t{1024});
  CHECK(texts["dptr"] == "[0x2b0000000000]");
  CHECK(texts["bytesize"] == "1024");
  texts = described("cuMemAlloc_v2", false, &address, std::size_t{1024});
  CHECK(texts["dptr"].starts_with("0x"));
}

TEST_CASE("an address that cannot be read is shown as it is") {
  const auto nowhere = reinterpret_cast<CUdeviceptr*>(16);
  CHECK(described("cuMemAlloc_v2", true, nowhere, std::size_t{1})["dptr"] == "0x10");
  CUdeviceptr* const null = nullptr;
  CHECK(described("cuMemAlloc_v2", true, null, std::size_t{1})["dptr"] == "NULL");
}

TEST_CASE("values of enumerations have their names") {
  int value = 7;
  const auto known = CU_DEVICE_ATTRIBUTE_WARP_SIZE;
  auto texts = described("cuDeviceGetAttribute", true, &value, known, CUdevice{0});
  CHECK(texts["attrib"] == "CU_DEVICE_ATTRIBUTE_WARP_SIZE");
  CHECK(texts["pi"] == "[7]");
  const auto unknown = static_cast<CUdevice_attribute>(9999);
  CHECK(described("cuDeviceGetAttribute", true, &value, unknown, CUdevice{0})["attrib"] == "9999");
}

TEST_CASE("structures show their fields, also those of a failed call") {
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstDevice = 0x1000;
  copy.WidthInBytes = 64;
  const std::string text = described("cuMemcpy2D_v2", false, &copy)["pCopy"];
  CHECK(text.find("srcMemoryType=CU_MEMORYTYPE_HOST") != std::string::npos);
  CHECK(text.find("dstDevice=0x1000") != std::string::npos);
  CHECK(text.find("WidthInBytes=64") != std::string::npos);
}

TEST_CASE("a structure that is passed by value is shown") {
  CUdeviceptr address = 0;
  CUipcMemHandle handle{};
  std::memcpy(handle.reserved, "ipc", 4);
  const auto texts = described("cuIpcOpenMemHandle_v2", true, &address, handle, 1u);
  CHECK(texts.at("Flags") == "1");
}

TEST_CASE("arrays show their elements, and end where their length says") {
  const CUgraphNode nodes[] = {reinterpret_cast<CUgraphNode>(0x10),
                               reinterpret_cast<CUgraphNode>(0x20)};
  const CUgraphEdgeData* const none = nullptr;
  const auto texts = described("cuGraphAddDependencies_v2", true, CUgraph{}, &nodes[0], &nodes[1],
                               none, std::size_t{1});
  CHECK(texts.at("from") == "[0x10]");
  CHECK(texts.at("to") == "[0x20]");
}

TEST_CASE("a text that ends at the end of memory is read") {
  char* text = lastPage() + 4096 - 4;
  std::memcpy(text, "abc", 4);
  CUfunction function = nullptr;
  const char* const constant = text;
  CHECK(described("cuModuleGetFunction", false, &function, CUmodule{}, constant)["name"] ==
        "\"abc\"");
}

TEST_CASE("handles of kernels have the kernel's name") {
  const std::uint64_t words[] = {0x45, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0};
  const auto nameOf = [](wire::HandleKind kind, std::uint64_t) {
    return std::string(kind == wire::HandleKind::function ? "scale" : "");
  };
  CHECK(describeArguments(factsOf("cuLaunchKernel"), words, true, nameOf)[0].value == "0x45 scale");
}

TEST_CASE("lines of a trace are events of JSON, or text") {
  CHECK(formatOf("a/trace.json") == Format::json);
  CHECK(formatOf("trace.txt") == Format::text);
  const Argument arguments[] = {{"name", "\"a\\b\n\""}};
  const CallEvent call{"cuX", 1, 2, 1'000'500, 1'002'000, "CUDA_SUCCESS", arguments};
  CHECK(format(Format::json, call) ==
        "{\"ph\":\"X\",\"cat\":\"call\",\"name\":\"cuX\",\"pid\":1,\"tid\":2,\"ts\":1000.500,"
        "\"dur\":1.500,\"args\":{\"return\":\"CUDA_SUCCESS\","
        "\"name\":\"\\\"a\\\\b\\u000a\\\"\"}},\n");
  CHECK(format(Format::text, call) ==
        "0.001001 1 thread 2 cuX(name=\"a\\b\n\") = CUDA_SUCCESS <0.000002>\n");
  const WorkEvent work{"[memcpy HtoD]", "copy", 1, 0, 2, 1'000'000, 2'000'000, 64};
  CHECK(format(Format::text, work) ==
        "0.001000 1 GPU 0 stream 0x2 [memcpy HtoD] 64 bytes <0.001000>\n");
  CHECK(format(Format::json, work).find("\"bytes\":64") != std::string::npos);
}

TEST_CASE("two streams have two tracks") {
  const WorkEvent one{"k", "kernel", 1, 0, 0x4600000010000010, 0, 1, 0};
  WorkEvent other = one;
  other.stream = 0x4600000010000020;
  CHECK(formatTrack(Format::json, one) != formatTrack(Format::json, other));
  CHECK(formatTrack(Format::text, one).empty());
}

TEST_CASE("names of kernels are readable") {
  CHECK(demangled("_Z5scalePff") == "scale(float*, float)");
  CHECK(demangled("plain") == "plain");
}

TEST_CASE("durations have four to five digits and a unit") {
  CHECK(formatDuration(0) == "0ns");
  CHECK(formatDuration(999) == "999ns");
  CHECK(formatDuration(1234.5) == "1.2345us");
  CHECK(formatDuration(12'345'678) == "12.346ms");
  CHECK(formatDuration(3.5e9) == "3.5000s");
}

TEST_CASE("the summary has the work on the GPU and the calls, the longest first") {
  Summary summary;
  CHECK(summary.empty());
  summary.addCall("cuB", 1000);
  summary.addCall("cuA", 2000);
  summary.addCall("cuA", 1000);
  summary.addWork("kernel(int)", 5000);
  CHECK(summary.table("title", 0) ==
        "title\n"
        "            Type  Time(%)       Time     Calls        Avg        Min        Max  Name\n"
        " GPU activities:  100.00%   5.0000us         1   5.0000us   5.0000us   5.0000us  "
        "kernel(int)\n"
        "      API calls:   75.00%   3.0000us         2   1.5000us   1.0000us   2.0000us  cuA\n"
        "                   25.00%   1.0000us         1   1.0000us   1.0000us   1.0000us  cuB\n");
  CHECK(
      summary.table("title", 3).ends_with("The time of 3 pieces of work on the GPU is unknown.\n"));
}

}  // namespace interposer::trace
