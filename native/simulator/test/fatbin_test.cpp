// Fat binaries: which PTX is chosen, how it is decompressed, and that nothing in a damaged
// container leads outside of it.
#include "native/simulator/fatbin.h"

#include <doctest/doctest.h>
#include <elf.h>
#include <lz4.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "native/simulator/ptx_text.h"

namespace {

enum Compression { kRaw, kLz4, kZstd };

struct Part {
  unsigned kind, arch;
  std::string payload;
  Compression compression = kRaw;
  unsigned long long flags = 0;
};

void put(std::string& out, const void* data, std::size_t size) {
  out.append(static_cast<const char*>(data), size);
}
template <class T>
void put(std::string& out, T value) {
  put(out, &value, sizeof value);
}

std::string compressed(const Part& part) {
  std::string out;
  if (part.compression == kLz4) {
    out.resize(static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(part.payload.size()))));
    out.resize(static_cast<std::size_t>(LZ4_compress_default(part.payload.data(), out.data(),
                                                             static_cast<int>(part.payload.size()),
                                                             static_cast<int>(out.size()))));
  } else if (part.compression == kZstd) {
    out.resize(ZSTD_compressBound(part.payload.size()));
    out.resize(ZSTD_compress(out.data(), out.size(), part.payload.data(), part.payload.size(), 3));
  }
  return out;
}

std::string entry(const Part& part) {
  std::string body = part.compression == kRaw ? part.payload : compressed(part);
  const auto packed = static_cast<unsigned>(part.compression == kRaw ? 0 : body.size());
  body.resize((body.size() + 7) / 8 * 8);
  const unsigned long long flags = 0x11 | part.flags | (part.compression == kLz4 ? 0x2000 : 0) |
                                   (part.compression == kZstd ? 0x8000 : 0);
  std::string out;
  put<unsigned short>(out, static_cast<unsigned short>(part.kind));
  put<unsigned short>(out, 0x0101);
  put<unsigned>(out, 64);
  put<unsigned long long>(out, body.size());
  put<unsigned>(out, packed);
  put<unsigned>(out, 0);
  put<unsigned>(out, 0x00080000);
  put<unsigned>(out, part.arch);
  put<unsigned long long>(out, 0);
  put<unsigned long long>(out, flags);
  put<unsigned long long>(out, 0);
  put<unsigned long long>(out, part.payload.size());
  return out + body;
}

std::string fatbin(const std::vector<Part>& parts) {
  std::string entries;
  for (const Part& part : parts) entries += entry(part);
  std::string out;
  put<unsigned>(out, 0xba55ed50);
  put<unsigned short>(out, 1);
  put<unsigned short>(out, 16);
  put<unsigned long long>(out, entries.size());
  return out + entries;
}

struct Read {
  CUresult result;
  std::vector<std::string> texts;
  std::string sentence;
};

Read read(const void* image) {
  Read r;
  r.result = simulator::readImage(image, r.texts, r.sentence);
  return r;
}

std::string chosen(const std::vector<Part>& parts) {
  const Read r = read(fatbin(parts).data());
  return r.result == CUDA_SUCCESS && r.texts.size() == 1
             ? r.texts[0]
             : "result " + std::to_string(static_cast<int>(r.result));
}

TEST_CASE("the PTX of the highest usable architecture is chosen") {
  CHECK(chosen({{1, 75, "75"}, {1, 80, "80"}, {1, 100, "100"}}) == "80");
  CHECK(chosen({{2, 90, "cubin"}, {1, 90, "90"}, {1, 75, "75"}}) == "90");
  CHECK(chosen({{1, 90, "90"}, {1, 90, "90a", kRaw, 0x100000}}) == "90a");
  CHECK(chosen({{1, 80, "80"}, {1, 89, "89a", kRaw, 0x100000}}) == "80");
  CHECK(chosen({{1, 80, "80"}, {1, 89, "family", kRaw, 0x200000}}) == "80");
  CHECK(chosen({{2, 90, "cubin"}}) == "result 209");
  CHECK(chosen({{1, 100, "100"}}) == "result 209");
  CHECK(chosen({}) == "result 209");
  CHECK(read(fatbin({{2, 90, "cubin"}}).data()).sentence.find("sm_90") != std::string::npos);
}

TEST_CASE("LZ4 and zstd are decompressed, and damage is noticed") {
  std::string text = "\n.version 8.0\n";
  for (int i = 0; i < 1000; ++i) text += "// line " + std::to_string(i) + "\n";
  CHECK(chosen({{1, 80, text, kLz4}}) == text);
  CHECK(chosen({{1, 80, text, kZstd}}) == text);
  CHECK(chosen({{1, 80, text + std::string(3, 0)}}) == text);
  std::string image = fatbin({{1, 80, text, kZstd}});
  for (std::size_t at = 16 + 64; at < image.size(); ++at) {
    std::string damaged = image;
    damaged[at] = static_cast<char>(~damaged[at]);
    const Read r = read(damaged.data());
    CHECK((r.result == CUDA_SUCCESS ||
           (r.result == CUDA_ERROR_INVALID_IMAGE && !r.sentence.empty())));
  }
}

// The container ends where readable memory ends: a read past its end would crash.
TEST_CASE("nothing outside of a damaged container is read") {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::string image =
      fatbin({{1, 80, std::string(200, 'x'), kLz4}, {1, 90, std::string(100, 'y')}});
  auto* pages = static_cast<char*>(
      mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  mprotect(pages + page, page, PROT_NONE);
  char* placed = pages + page - image.size();
  for (std::size_t at = 16; at < image.size(); ++at) {
    for (const int value : {0, 1, 0x7f, 0xff}) {
      std::memcpy(placed, image.data(), image.size());
      placed[at] = static_cast<char>(value);
      const Read r = read(placed);
      CHECK((r.result == CUDA_SUCCESS || r.result == CUDA_ERROR_INVALID_IMAGE ||
             r.result == CUDA_ERROR_NO_BINARY_FOR_GPU));
    }
  }
  // The container's own length says where it ends: cut anywhere, it is read no further.
  for (std::size_t size = 16; size < image.size(); ++size) {
    char* cut = pages + page - size;
    std::memcpy(cut, image.data(), size);
    const unsigned long long rest = size - 16;
    std::memcpy(cut + 8, &rest, sizeof rest);
    read(cut);
  }
  munmap(pages, 2 * page);
}

struct Wrapper {
  unsigned magic, version;
  const void* data;
  const void* const* elements;
};

TEST_CASE("a wrapper leads to its fat binaries") {
  const std::string cubin = fatbin({{2, 90, "linked"}}), first = fatbin({{1, 80, "one"}}),
                    second = fatbin({{1, 80, "two", kZstd}});
  const void* elements[] = {first.data(), second.data(), nullptr};
  const Wrapper plain{0x466243b1, 1, first.data(), nullptr},
      linked{0x466243b1, 2, cubin.data(), elements}, empty{0x466243b1, 1, nullptr, nullptr};
  CHECK(read(&plain).texts == std::vector<std::string>{"one"});
  CHECK(read(&linked).texts == std::vector<std::string>{"one", "two"});
  CHECK(read(&empty).result == CUDA_ERROR_INVALID_IMAGE);
}

/// Machine code with one function, defined or only used.
std::string machineCode(const char* name, bool defined) {
  struct {
    Elf64_Ehdr header{};
    Elf64_Shdr sections[3]{};
    Elf64_Sym symbol{};
    char names[64] = "";
  } code;
  code.header.e_shoff = offsetof(decltype(code), sections);
  code.header.e_shnum = 3;
  code.header.e_shentsize = sizeof(Elf64_Shdr);
  code.header.e_shstrndx = 2;
  code.header.e_ident[EI_CLASS] = ELFCLASS64;
  std::memcpy(code.header.e_ident, ELFMAG, SELFMAG);
  code.sections[1].sh_type = SHT_SYMTAB;
  code.sections[1].sh_offset = offsetof(decltype(code), symbol);
  code.sections[1].sh_size = sizeof code.symbol;
  code.sections[1].sh_link = 2;
  code.sections[2].sh_type = SHT_PROGBITS;  // the last part of the file
  code.sections[2].sh_offset = offsetof(decltype(code), names);
  code.sections[2].sh_size = sizeof code.names;
  code.symbol.st_name = 1;
  code.symbol.st_shndx = defined ? 1 : SHN_UNDEF;
  std::snprintf(code.names + 1, sizeof code.names - 1, "%s", name);
  return std::string(reinterpret_cast<const char*>(&code), sizeof code);
}

TEST_CASE("CUDA's device runtime is no part of the program") {
  constexpr const char* kFunction = "__cudaCDP2LaunchDeviceV2";
  const std::string cubin = fatbin({{2, 90, "linked"}}), program = fatbin({{1, 80, "one"}});
  const auto with = [&](const std::string& code) {
    const std::string library = fatbin({{2, 90, code, kZstd}, {1, 121, "newer"}});
    const void* elements[] = {program.data(), library.data(), nullptr};
    const Wrapper linked{0x466243b1, 2, cubin.data(), elements};
    return read(&linked);
  };
  const std::string runtime = machineCode(kFunction, true);
  CHECK(with(runtime).texts == std::vector<std::string>{"one"});
  CHECK(with(machineCode(kFunction, false)).result == CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK(with(machineCode("other", true)).result == CUDA_ERROR_NO_BINARY_FOR_GPU);
  for (std::size_t size = 0; size + 64 < runtime.size(); ++size)
    CHECK(with(runtime.substr(0, size)).result == CUDA_ERROR_NO_BINARY_FOR_GPU);
  for (std::size_t at = 0; at < runtime.size(); ++at) {
    std::string damaged = runtime;
    damaged[at] = static_cast<char>(~damaged[at]);
    const CUresult result = with(damaged).result;
    CHECK((result == CUDA_SUCCESS || result == CUDA_ERROR_NO_BINARY_FOR_GPU));
  }
}

TEST_CASE("PTX text is an image, and machine code is not") {
  CHECK(read(".version 7.0").result == CUDA_SUCCESS);
  CHECK(read("// comment\n /* another */ .version 7.0").texts.size() == 1);
  CHECK(read("").result == CUDA_ERROR_INVALID_IMAGE);
  CHECK(read("text").result == CUDA_ERROR_INVALID_IMAGE);
  CHECK(read("/* no end").result == CUDA_ERROR_INVALID_IMAGE);
  CHECK(read(machineCode("other", true).data()).result == CUDA_ERROR_NO_BINARY_FOR_GPU);
}

TEST_CASE("PTX that is newer than the driver is refused") {
  CHECK(simulator::newestPtx(11080) == 78);
  CHECK(simulator::newestPtx(12040) == 84);
  CHECK(simulator::newestPtx(12060) == 85);
  CHECK(simulator::newestPtx(12090) == 88);
  CHECK(simulator::newestPtx(13000) == 90);
  CHECK(read("// from CUDA 13.0\n.version 9.0").result == CUDA_SUCCESS);
  CHECK(read("// from CUDA 13.1\n.version 9.1").result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  CHECK(read(fatbin({{1, 80, ".version 9.4\n"}}).data()).result ==
        CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
}

TEST_CASE("PTX for another compute capability is refused") {
  const auto result = [](const std::string& target) {
    return read((".version 8.8\n.target " + target + "\n.address_size 64\n").c_str()).result;
  };
  CHECK(result("sm_50") == CUDA_SUCCESS);
  CHECK(result("sm_90") == CUDA_SUCCESS);
  CHECK(result("sm_90a") == CUDA_SUCCESS);
  CHECK(result("sm_90, debug") == CUDA_SUCCESS);
  CHECK(result("sm_100") == CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK(result("sm_80a") == CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK(result("sm_103f") == CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK(read("\n.version 8.8\n.target sm_120").sentence ==
        "The PTX is for compute capability 12.0, and the GPU has 9.0. Compile it for that or an "
        "earlier one.");
}

}  // namespace
