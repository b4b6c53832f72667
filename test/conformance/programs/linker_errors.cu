// What cuLink* refuses: PTX with mistakes, names that are not defined or defined twice, files that are not there; and what the logs say.
// conformance: flags=-lcuda judges=itself
#include <cstring>
#include <string>

#include "stream_memory.h"

const char* kHead = ".version 7.0\n.target sm_70\n.address_size 64\n";
const char* kWrong = ".visible .entry wrong() { frobnicate.u32 %r1; ret; }\n";
const char* kMissing = ".extern .func absent ();\n.visible .entry needs() { call.uni absent; ret; }\n";
const char* kOnce = ".visible .func once () { ret; }\n.visible .entry first() { call.uni once; ret; }\n";
const char* kAgain = ".visible .func once () { ret; }\n.visible .entry second() { call.uni once; ret; }\n";

class Link {
 public:
  Link() {
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    OK(cuLinkCreate(2, options, values_, &state_));
  }
  ~Link() { OK(cuLinkDestroy(state_)); }
  CUresult add(const char* body) {
    std::string text = std::string(kHead) + body;
    return cuLinkAddData(state_, CU_JIT_INPUT_PTX, text.data(), text.size() + 1, "input", 0, nullptr, nullptr);
  }
  CUresult complete() {
    void* image = nullptr;
    size_t bytes = 0;
    return cuLinkComplete(state_, &image, &bytes);
  }
  bool says(const char* word) const { return std::strstr(errors_, word) != nullptr; }
  CUlinkState state() const { return state_; }

 private:
  CUlinkState state_ = nullptr;
  char errors_[4096] = "";
  void* values_[2] = {errors_, (void*)sizeof errors_};
};

int main() {
  useContext();
  {
    Link link;
    FAILS(CUDA_ERROR_INVALID_PTX, link.add(kWrong));
    EXPECT(link.says("frobnicate") || link.says("syntax") || link.says("ptxas"));
  }
  {
    Link link;
    OK(link.add(kMissing));
    EXPECT(link.complete() != CUDA_SUCCESS);
    EXPECT(link.says("absent"));
  }
  {
    Link link;
    OK(link.add(kOnce));
    FAILS(CUDA_ERROR_UNKNOWN, link.add(kAgain));
    EXPECT(link.complete() != CUDA_SUCCESS);
    EXPECT(link.says("once"));
  }
  {
    Link link;
    FAILS(CUDA_ERROR_FILE_NOT_FOUND, cuLinkAddFile(link.state(), CU_JIT_INPUT_PTX, "/no such file", 0, nullptr, nullptr));
    char garbage[64] = "this is no code";
    EXPECT(cuLinkAddData(link.state(), CU_JIT_INPUT_CUBIN, garbage, sizeof garbage, "garbage", 0, nullptr, nullptr) != CUDA_SUCCESS);
    EXPECT(cuLinkAddData(link.state(), CU_JIT_INPUT_NVVM, garbage, sizeof garbage, "garbage", 0, nullptr, nullptr) != CUDA_SUCCESS);
    EXPECT(cuLinkAddData(link.state(), static_cast<CUjitInputType>(99), garbage, sizeof garbage, "garbage", 0, nullptr, nullptr) != CUDA_SUCCESS);
  }
  EXPECT(cuLinkCreate(0, nullptr, nullptr, nullptr) != CUDA_SUCCESS);
  return verdict();
}
