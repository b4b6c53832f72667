// A module from the fat binary that the compiler put into this program.
// conformance: flags=-lcuda judges=itself
#include <elf.h>
#include <link.h>

#include <vector>

#include "by_name.h"

extern "C" __global__ void twice(int* value) { *value *= 2; }

/// An entry of the section .nvFatBinSegment. A linked program has version 2.
struct Wrapper {
  unsigned magic, version;
  const void* fatBinary;
  const void* objects;
};

/// The fat binary of this file. The section also has one of each library that is linked.
static const void* fatBinary() {
  std::FILE* file = std::fopen("/proc/self/exe", "rb");
  if (file == nullptr) return nullptr;
  Elf64_Ehdr header{};
  EXPECT(std::fread(&header, sizeof header, 1, file) == 1);
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  std::fseek(file, static_cast<long>(header.e_shoff), SEEK_SET);
  EXPECT(std::fread(sections.data(), sizeof(Elf64_Shdr), sections.size(), file) == sections.size());
  std::vector<char> names(sections[header.e_shstrndx].sh_size);
  std::fseek(file, static_cast<long>(sections[header.e_shstrndx].sh_offset), SEEK_SET);
  EXPECT(std::fread(names.data(), 1, names.size(), file) == names.size());
  std::fclose(file);
  for (const Elf64_Shdr& section : sections) {
    if (std::strcmp(&names[section.sh_name], ".nvFatBinSegment") != 0) continue;
    const auto* wrapper =
        reinterpret_cast<const Wrapper*>(_r_debug.r_map->l_addr + section.sh_addr);
    for (std::size_t i = 0; i < section.sh_size / sizeof(Wrapper); ++i)
      if (wrapper[i].version == 1) return wrapper[i].fatBinary;
  }
  return nullptr;
}

int main() {
  startDriver();
  const void* image = fatBinary();
  EXPECT(image != nullptr);
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  EXPECT_OK(cuModuleLoadFatBinary(&module, image));
  EXPECT_OK(cuModuleGetFunction(&function, module, "twice"));
  CUdeviceptr value = 0;
  EXPECT_OK(cuMemAlloc(&value, 4));
  EXPECT_OK(cuMemsetD32(value, 21, 1));
  void* parameters[] = {&value};
  EXPECT_OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  EXPECT(valueAt(value) == 42);
  EXPECT_OK(cuModuleUnload(module));
  return verdict();
}
