// Stand-in for cudart: an object made by nvcc registers its image at program start. Writes what the
// interposer would extract from memory to one file per image: ARGUMENT.0, ARGUMENT.1, ...
#include <cstdio>
#include <string>

#include "interposer/code/image.h"

namespace {
const void* given = nullptr;
}

extern "C" {
void** __cudaRegisterFatBinary(void* wrapper) {
  given = wrapper;
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, void*, void*, void*,
                            void*, int*) {}
void __cudaInitModule(void**) {}
int __cudaPopCallConfiguration(void*, void*, void*, void*) { return 1; }
int __cudaGetKernel(void**, const void*) { return 1; }
int __cudaLaunchKernel(void*, ...) { return 1; }
int cudaLaunchKernel(const void*, ...) { return 1; }
}

int main(int argc, char** argv) {
  if (argc != 2 || given == nullptr) return std::fputs("no image was registered\n", stderr), 1;
  int number = 0;
  for (const std::span<const std::byte> image : interposer::imagesOf(given)) {
    std::FILE* file =
        std::fopen((std::string(argv[1]) + "." + std::to_string(number++)).c_str(), "wb");
    if (file == nullptr || std::fwrite(image.data(), 1, image.size(), file) != image.size() ||
        std::fclose(file) != 0)
      return 1;
  }
  return std::printf("%d\n", number), 0;
}
