// Registers of kernels: what a launch, cudaFuncGetAttributes and occupancy say agrees, and bounds
// are kept. With a compiler at hand (CUDA_HOME; `npm test` sets it), the estimate is compared with
// NVIDIA's assembler for the kernels of register_kernels.cu.
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <utility>

#include "native/simulator/test/driver_test.h"

namespace {

namespace fs = std::filesystem;

/// A kernel that holds `count` loaded values across a barrier.
std::string holding(unsigned count, const std::string& directives) {
  std::ostringstream text;
  text << ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 at)\n"
       << directives << "{\n.reg .b32 %r<" << count + 1
       << ">;\n.reg .b64 %rd<3>;\nld.param.u64 %rd1, [at];\ncvta.to.global.u64 %rd2, %rd1;\n";
  for (unsigned i = 0; i < count; ++i)
    text << "ld.global.u32 %r" << i << ", [%rd2+" << 4 * i << "];\n";
  text << "bar.sync 0;\n";
  for (unsigned i = 0; i < count; ++i)
    text << "st.global.u32 [%rd2+" << 4 * (count - 1 - i) << "], %r" << i << ";\n";
  text << "ret;\n}\n";
  return text.str();
}

int attribute(CUfunction function, CUfunction_attribute which) {
  int value = -1;
  OK(DRIVER(cuFuncGetAttribute)(&value, which, function));
  return value;
}

int registersOf(CUfunction function) { return attribute(function, CU_FUNC_ATTRIBUTE_NUM_REGS); }

/// Threads of a block that the register file of an H200 holds: a quarter of 65,536 for each fourth
/// warp, in pieces of 256.
int threadsWith(int registers) {
  return std::min(1024, 16384 / ((registers * 32 + 255) / 256 * 256) * 4 * 32);
}

class Launches {
 public:
  Launches() { OK(DRIVER(cuMemAlloc_v2)(&at_, 4096)); }
  ~Launches() { OK(DRIVER(cuMemFree_v2)(at_)); }
  CUresult operator()(CUfunction function, unsigned threads) {
    void* parameters[] = {&at_};
    const CUresult launched =
        DRIVER(cuLaunchKernel)(function, 1, 1, 1, threads, 1, 1, 0, nullptr, parameters, nullptr);
    OK(DRIVER(cuCtxSynchronize)());
    return launched;
  }

 private:
  CUdeviceptr at_ = 0;
};

void answersAgree(CUfunction function, Launches& launch) {
  const int most = attribute(function, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  CHECK(most == threadsWith(registersOf(function)));
  OK(launch(function, static_cast<unsigned>(most)));
  int blocks = 0;
  OK(DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, function, most, 0));
  CHECK(blocks >= 1);
  if (most == 1024) return;
  EXPECT(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, launch(function, static_cast<unsigned>(most) + 32));
  OK(DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, function, most + 32, 0));
  CHECK(blocks == 0);
}

TEST_CASE("a kernel needs a register for each value that it holds") {
  usePrimaryContext();
  Launches launch;
  const CUfunction few = functionOf(holding(40, "").c_str(), "k"),
                   many = functionOf(holding(100, "").c_str(), "k");
  CHECK(registersOf(few) >= 40);
  CHECK(registersOf(few) <= 48);
  CHECK(registersOf(many) >= 100);
  CHECK(registersOf(many) <= 108);
  answersAgree(few, launch);
  answersAgree(many, launch);
  EXPECT(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, launch(many, 1024));
  CHECK(registersOf(functionOf(holding(400, "").c_str(), "k")) == 255);
}

// PTX numbers each result as a register of its own.
TEST_CASE("values that are not needed at once share registers") {
  usePrimaryContext();
  Launches launch;
  std::ostringstream text;
  text << ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 "
          "at)\n{\n.reg .b32 %r<401>;\n.reg .b64 %rd<3>;\n"
          "ld.param.u64 %rd1, [at];\ncvta.to.global.u64 %rd2, %rd1;\nld.global.u32 %r0, [%rd2];\n";
  for (int i = 0; i < 400; ++i) text << "add.s32 %r" << i + 1 << ", %r" << i << ", " << i << ";\n";
  text << "st.global.u32 [%rd2], %r400;\nret;\n}\n";
  const CUfunction function = functionOf(text.str().c_str(), "k");
  CHECK(registersOf(function) <= 16);
  OK(launch(function, 1024));
}

TEST_CASE("bounds of the text limit the registers") {
  usePrimaryContext();
  Launches launch;
  const CUfunction threads = functionOf(holding(100, ".maxntid 1024, 1, 1\n").c_str(), "k");
  CHECK(registersOf(threads) == 64);
  OK(launch(threads, 1024));
  const CUfunction blocks =
      functionOf(holding(100, ".maxntid 256, 1, 1\n.minnctapersm 8\n").c_str(), "k");
  CHECK(registersOf(blocks) == 32);
  int resident = 0;
  OK(DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&resident, blocks, 256, 0));
  CHECK(resident == 8);
  CHECK(registersOf(functionOf(holding(100, ".maxnreg 40\n").c_str(), "k")) == 40);
  // 21 warps, so that one fourth of the multiprocessor has six: 80 registers, not 65,536 / 672.
  const CUfunction uneven = functionOf(holding(150, ".maxntid 672, 1, 1\n").c_str(), "k");
  CHECK(registersOf(uneven) == 80);
  OK(launch(uneven, 672));
}

std::string contentsOf(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool run(const std::string& command) {
  const bool ok = std::system(command.c_str()) == 0;
  if (!ok) std::fprintf(stderr, "failed: %s\n", command.c_str());
  return ok;
}

/// The part of the line from `before` to `end`; empty if the line lacks `before`.
std::string between(const std::string& line, const std::string& before, char end) {
  const size_t at = line.find(before);
  if (at == std::string::npos) return {};
  const size_t from = at + before.size();
  return line.substr(from, line.find(end, from) - from);
}

/// The registers of each kernel in the output of `ptxas -v`.
std::map<std::string, int> allocated(const std::string& report) {
  std::map<std::string, int> result;
  std::istringstream lines(report);
  std::string name;
  for (std::string line; std::getline(lines, line);) {
    if (const std::string kernel = between(line, "Compiling entry function '", '\'');
        !kernel.empty())
      name = kernel;
    const std::string used = between(line, "Used ", ' ');
    if (!name.empty() && !used.empty()) result[std::exchange(name, "")] = std::stoi(used);
  }
  return result;
}

// The estimate is rather low: what runs with the assembler's allocation runs here.
TEST_CASE("the estimate is close to the allocation of NVIDIA's assembler") {
  const char* given = std::getenv("CUDA_HOME");
  const fs::path home = given == nullptr ? "" : given;
  if (!fs::exists(home / "bin/ptxas")) return unit::skip("no ptxas (set CUDA_HOME)");
  const std::string source = unit::argument(1, "the path of register_kernels.cu");
  usePrimaryContext();
  char pattern[] = "/tmp/simulator_registers_test.XXXXXX";
  const char* made = mkdtemp(pattern);
  REQUIRE(made != nullptr);
  const fs::path directory = made, ptx = directory / "kernels.ptx", report = directory / "report";
  const std::string nvcc = (home / "bin/nvcc").string() +
                           " -std=c++17 -O2 -arch=compute_80 -ptx -o " + ptx.string() + " " +
                           source;
  const std::string ptxas = (home / "bin/ptxas").string() + " -arch=sm_90 -v -o " +
                            (directory / "out").string() + " " + ptx.string() + " 2> " +
                            report.string();
  REQUIRE(run(nvcc));
  REQUIRE(run(ptxas));
  CUmodule module = nullptr;
  OK(DRIVER(cuModuleLoadData)(&module, contentsOf(ptx).c_str()));
  const std::map<std::string, int> kernels = allocated(contentsOf(report));
  CHECK(kernels.size() >= 20);
  for (const auto& [name, real] : kernels) {
    CUfunction function = nullptr;
    OK(DRIVER(cuModuleGetFunction)(&function, module, name.c_str()));
    const int estimate = registersOf(function);
    CAPTURE(name);
    std::printf("%-40s estimate %3d, ptxas %3d\n", name.c_str(), estimate, real);
    CHECK(threadsWith(estimate) >= threadsWith(real));
    CHECK(estimate <= std::max(16, real + 8));
    CHECK(3 * estimate >= 2 * real - 20);
  }
  fs::remove_all(directory);
}

}  // namespace
