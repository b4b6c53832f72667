// Code images for the worker's reader and, after it, the simulated driver. The driver never holds
// more than was counted, sees no unchecked byte and no pointer of the client, and neither crashes.
#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "driver.h"
#include "native/fatbin/fatbin.h"
#include "native/worker/images/vetted_image.h"
#include "test/fuzz/require.h"
#include "wire/image.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

constexpr std::uint64_t kPage = std::uint64_t{2} << 20;  ///< small variables share an allocation
constexpr std::string_view kHead = ".version 8.0\n.target sm_80\n.address_size 64\n";
constexpr std::string_view kFragments[] = {"/*",
                                           "*/",
                                           "//",
                                           "\"",
                                           "\\",
                                           "\n",
                                           "\t",
                                           "\r",
                                           "{",
                                           "}",
                                           "[",
                                           "]",
                                           "(",
                                           ")",
                                           ";",
                                           ",",
                                           "=",
                                           "0x",
                                           "U",
                                           "::",
                                           "@p ",
                                           " .global ",
                                           " .const ",
                                           "18446744073709551615",
                                           "0f3F800000",
                                           ".loc 1 2 3 ",
                                           ".extern ",
                                           ".align 65536 ",
                                           "ld.global.u32 r, [a];",
                                           ".attribute(.managed) "};
/// Between two declarations.
constexpr std::string_view kBetween[] = {
    "\n",
    ".file 1 \"/*\"\n",
    ".file 2 \"*/\"\n",
    "/* /* */",
    "// \\\n",
    "/*/ \" */",
    ".section .s { .b8 1 }",
    ".pragma \"/*\";",
    ".visible .entry k(.param .u64 .ptr .global .align 8 p) { ret; }",
    "// .global .b8 z[9];\n"};
/// Between two words.
constexpr std::string_view kBlanks[] = {" ", " ", " ", "\n", "\t", "/**/", "/*\"*/", "//\"\n"};
constexpr std::string_view kTypes[] = {".b8", ".u8", ".b16", ".s32", ".f32", ".b64", ".f64"};

struct Simulated {
  worker::Driver driver{};

  Simulated() {
    setenv("NVIDIA_VIRTUAL_SIMULATED_MEMORY", "256MiB", 1);
    CUcontext context = nullptr;
    void* library = dlopen(SIMULATOR, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library != nullptr && worker::load(library, driver) &&
            driver.cuInit(0) == CUDA_SUCCESS);
    REQUIRE(driver.cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
            driver.cuCtxSetCurrent(context) == CUDA_SUCCESS);
  }
  std::size_t held() const {
    std::size_t free = 0, total = 0;
    REQUIRE(driver.cuMemGetInfo_v2(&free, &total) == CUDA_SUCCESS);
    return total - free;
  }
};

/// Bytes at the end of accessible memory.
class Guarded {
 public:
  explicit Guarded(std::span<const std::byte> bytes) : pages_((bytes.size() + 4095) / 4096 + 1) {
    void* memory =
        mmap(nullptr, pages_ * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    memory_ = static_cast<std::byte*>(memory);
    REQUIRE(mprotect(memory_ + (pages_ - 1) * 4096, 4096, PROT_NONE) == 0);
    begin_ = memory_ + (pages_ - 1) * 4096 - bytes.size();
    std::memcpy(begin_, bytes.data(), bytes.size());
  }
  ~Guarded() { munmap(memory_, pages_ * 4096); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  const void* data() const { return begin_; }

 private:
  const std::size_t pages_;
  std::byte* memory_;
  std::byte* begin_;
};

std::uint32_t magicAt(const void* at) {
  std::uint32_t magic = 0;
  std::memcpy(&magic, at, sizeof magic);
  return magic;
}

/// What the driver would read, and nothing after its end.
std::span<const std::byte> seenBy(const void* pointer, std::size_t sent) {
  const auto* begin = static_cast<const std::byte*>(pointer);
  REQUIRE(magicAt(pointer) != wire::kWrapperMagic);
  if (magicAt(pointer) == wire::kFatbinMagic) {
    fatbin::Header header;
    std::memcpy(&header, pointer, sizeof header);
    REQUIRE(header.headerSize == sizeof header && header.size <= sent);
    return {begin, sizeof header + header.size};
  }
  const bool elf = std::memcmp(pointer,
                               "\x7f"
                               "ELF",
                               4) == 0;
  return {begin, elf ? sent : std::strlen(static_cast<const char*>(pointer)) + 1};
}

std::string fatbinOf(const std::string& text) {
  fatbin::Entry entry{};
  entry.kind = fatbin::kPtx;
  entry.version = 0x101;
  entry.headerSize = sizeof entry;
  entry.payloadSize = text.size() + 1;
  entry.arch = 80;
  entry.flags = 0x11;
  const fatbin::Header header{wire::kFatbinMagic, 1, sizeof header,
                              sizeof entry + entry.payloadSize};
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) +
         std::string(reinterpret_cast<const char*>(&entry), sizeof entry) + text + '\0';
}

/// Text that the driver accepts: declarations with sizes in every notation.
class Author {
 public:
  explicit Author(unsigned seed) : random_(seed) {}

  std::string text() {
    std::string text(kHead);
    for (unsigned left = 1 + random_() % 3; left > 0; --left)
      text += std::string(one(kBetween)) + declaration();
    return text + std::string(one(kBetween));
  }
  unsigned below(unsigned limit) { return static_cast<unsigned>(random_() % limit); }
  template <std::size_t N>
  std::string_view one(const std::string_view (&list)[N]) {
    return list[below(N)];
  }

 private:
  std::string declaration() {
    const std::string name = "v" + std::to_string(++names_);
    const std::string variable = std::string(".global") + blank() + std::string(one(kTypes)) +
                                 blank() + name + size() + blank() + ";";
    switch (below(5)) {
      case 0:
        return ".visible .entry k" + name + "() {" + (below(2) == 0 ? ".loc 1 2 3 " : "") +
               variable + " ret; }";
      case 1: return ".weak" + blank() + variable;
      case 2:
        return ".visible" + blank() + ".global .align " + number(1u << below(8)) + " .b8 " + name +
               size() + ";";
      default: return variable;
    }
  }
  std::string blank() { return std::string(one(kBlanks)); }
  std::string size() {
    std::string size;
    for (unsigned left = below(3); left > 0; --left)
      size += "[" + blank() + number(1 + below(64)) + blank() + "]";
    return size + "[" + number(1 + below(1u << below(25))) + "]";
  }
  std::string number(unsigned value) {
    char text[64];
    switch (below(5)) {
      case 0: std::snprintf(text, sizeof text, "0x%x", value); break;
      case 1: std::snprintf(text, sizeof text, "0X%XU", value); break;
      case 2: std::snprintf(text, sizeof text, "0%o", value); break;
      case 3: return binary(value);
      default: std::snprintf(text, sizeof text, below(2) == 0 ? "%u" : "%uU", value);
    }
    return text;
  }
  static std::string binary(unsigned value) {
    std::string digits;
    for (; value > 0; value /= 2) digits.insert(digits.begin(), static_cast<char>('0' + value % 2));
    return "0b" + digits;
  }

  std::minstd_rand random_;
  unsigned names_ = 0;
};

/// The PTX of a text, or of a fat binary's first entry; empty if there is none.
std::string textIn(std::string_view image) {
  if (image.size() < 4 || magicAt(image.data()) != wire::kFatbinMagic)
    return std::string(image.substr(0, image.find('\0')));
  std::string text;
  fatbin::eachEntry(std::as_bytes(std::span(image)),
                    [&](const fatbin::Entry& entry, std::span<const std::byte>,
                        std::span<const std::byte> payload) {
                      if (text.empty() && entry.kind == fatbin::kPtx)
                        text = fatbin::contentOf(entry, payload, 1 << 20).value_or("");
                    });
  return text.substr(0, text.find('\0'));
}

}  // namespace

/// The simulated driver keeps compiled code until it is unloaded.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }

/// Changes bytes, inserts a fragment into a text, or creates a new text; each alone or in a fat
/// binary.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  Author author(seed + 1);
  const unsigned way = author.below(4);
  if (size > 0 && way == 0) return LLVMFuzzerMutate(data, size, most);
  std::string text = textIn({reinterpret_cast<const char*>(data), size});
  if (way == 1 || text.find(".version") == text.npos)
    text = author.text();
  else
    text.insert(author.below(static_cast<unsigned>(text.size()) + 1), author.one(kFragments));
  const std::string image = author.below(4) == 0 ? fatbinOf(text) : text;
  if (image.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::memcpy(data, image.data(), image.size());
  return image.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Simulated simulated;
  std::vector<std::byte> sent(reinterpret_cast<const std::byte*>(data),
                              reinterpret_cast<const std::byte*>(data) + size);
  const bool binary = size >= 4 && (magicAt(data) == wire::kFatbinMagic ||
                                    magicAt(data) == wire::kWrapperMagic || data[0] == 0x7f);
  if (!binary) sent.push_back(std::byte{0});
  const std::span<const std::byte> part(sent);
  const worker::VettedImage image({&part, 1});
  REQUIRE((image.status() == CUDA_SUCCESS) == (image.pointer() != nullptr));
  if (image.pointer() == nullptr) return 0;
  const Guarded seen(seenBy(image.pointer(), sent.size()));
  const std::size_t before = simulated.held();
  CUmodule module = nullptr;
  const CUresult status =
      simulated.driver.cuModuleLoadDataEx(&module, seen.data(), 0, nullptr, nullptr);
  REQUIRE(simulated.held() - before <= (status == CUDA_SUCCESS ? image.facts().memory + kPage : 0));
  if (status == CUDA_SUCCESS) REQUIRE(simulated.driver.cuModuleUnload(module) == CUDA_SUCCESS);
  REQUIRE(simulated.held() == before);
  return 0;
}
