// A tenant that shares memory with another process of its container.
//   sharing export MIB      allocates so much, prints its handle, and keeps it until its input
//   ends;
//                           a line of input before that frees it and prints the result
//   sharing open HANDLE     opens a handle, prints the result, and keeps the memory until its input
//                           ends
// A handle is 64 bytes in hexadecimal.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <cuda_runtime.h>

static void awaitInput() {
  if (std::getchar() == EOF) std::exit(0);
}

static void say(const char* text) {
  std::puts(text);
  std::fflush(stdout);
}

static int exportMemory(const char* size) {
  void* memory = nullptr;
  cudaIpcMemHandle_t handle{};
  cudaError_t result = cudaMalloc(&memory, std::strtoull(size, nullptr, 10) << 20);
  if (result == cudaSuccess) result = cudaMemset(memory, 42, 4096);
  if (result == cudaSuccess) result = cudaIpcGetMemHandle(&handle, memory);
  if (result != cudaSuccess) return say(cudaGetErrorName(result)), 1;
  std::string text;
  for (const char byte : handle.reserved) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(byte));
    text += digits;
  }
  say(text.c_str());
  awaitInput();
  say(cudaGetErrorName(cudaFree(memory)));
  for (;;) awaitInput();
}

static int open(const std::string& text) {
  cudaIpcMemHandle_t handle{};
  for (std::size_t i = 0; i < sizeof handle && 2 * i + 1 < text.size(); ++i)
    handle.reserved[i] = static_cast<char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  void* memory = nullptr;
  unsigned char content = 0;
  cudaError_t result = cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess);
  if (result == cudaSuccess) result = cudaMemcpy(&content, memory, 1, cudaMemcpyDeviceToHost);
  if (result == cudaSuccess && content != 42) return say("wrong content"), 1;
  say(cudaGetErrorName(result));
  for (;;) awaitInput();
}

int main(int count, char** arguments) {
  if (count != 3) return 2;
  return std::strcmp(arguments[1], "export") == 0 ? exportMemory(arguments[2]) : open(arguments[2]);
}
