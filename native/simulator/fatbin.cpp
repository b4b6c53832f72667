#include "native/simulator/fatbin.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "native/fatbin/container.h"
#include "native/fatbin/fatbin.h"
#include "native/simulator/machine.h"
#include "native/simulator/ptx_text.h"

namespace simulator {
namespace {

using fatbin::Entry;
using fatbin::Header;
using fatbin::kMostBytes;

constexpr std::uint32_t kWrapperMagic = 0x466243b1;
constexpr std::uint32_t kFatbinMagic = 0xba55ed50;
constexpr std::size_t kMostElements = 1 << 16;

struct Wrapper {
  std::uint32_t magic, version;
  const void* data;
  const void* const* elements;  ///< version 2: the fat binaries of the object files, ended by null
};
static_assert(sizeof(Wrapper) == 24);

template <class T>
T load(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// Compares byte by byte, because `image` may be as short as an empty text.
bool begins(const void* image, std::uint32_t magic) {
  const auto* bytes = static_cast<const unsigned char*>(image);
  for (int i = 0; i < 4; ++i) {
    if (bytes[i] != (magic >> (8 * i) & 0xff)) return false;
  }
  return true;
}
bool isWrapper(const void* image) { return begins(image, kWrapperMagic); }
bool isFatbin(const void* image) { return begins(image, kFatbinMagic); }
bool isElf(const void* image) { return begins(image, 0x464c457f); }

struct Choice {
  Entry entry;
  std::span<const std::byte> payload;
};

bool fits(const Entry& entry) {
  return entry.kind == fatbin::kPtx &&
         runsPtx(entry.arch, (entry.flags & fatbin::kArchSpecific) != 0,
                 (entry.flags & fatbin::kFamily) != 0);
}

std::string capabilityText() {
  return std::to_string(computeCapability() / 10) + "." + std::to_string(computeCapability() % 10);
}

bool better(const Entry& entry, const Entry& than) {
  const auto rank = [](const Entry& e) {
    return std::pair(e.arch, (e.flags & (fatbin::kArchSpecific | fatbin::kFamily)) != 0);
  };
  return rank(entry) > rank(than);
}

/// The fat binary at `image`, of the length in its header: in a program's own memory there is no
/// other bound to check.
std::span<const std::byte> wholeFatbin(const void* image) {
  const auto header = load<Header>(image);
  return {static_cast<const std::byte*>(image),
          header.size > kMostBytes ? sizeof header : header.headerSize + header.size};
}

/// The text of a chosen entry, up to its terminator.
std::optional<std::string> textOf(const Choice& choice) {
  auto text = fatbin::contentOf(choice.entry, choice.payload);
  if (text) text->resize(strnlen(text->data(), text->size()));
  return text;
}

CUresult readFatbin(const void* image, std::vector<std::string>& texts, std::string& sentence) {
  std::optional<Choice> best;
  std::string machineCode;
  const bool whole = fatbin::eachEntry(
      wholeFatbin(image),
      [&](const Entry& entry, std::span<const std::byte>, std::span<const std::byte> payload) {
        if (entry.kind != fatbin::kPtx)
          machineCode += (machineCode.empty() ? "sm_" : ", sm_") + std::to_string(entry.arch);
        if (fits(entry) && (!best || better(entry, best->entry))) best = {entry, payload};
      });
  if (!whole) {
    sentence =
        "The fat binary is damaged: a length in it exceeds its size. Build the program again.";
    return CUDA_ERROR_INVALID_IMAGE;
  }
  if (!best) {
    sentence = "The fat binary holds no PTX for compute capability " + capabilityText() +
               " or lower" +
               (machineCode.empty() ? std::string() : " (machine code for " + machineCode + ")") +
               ", and the simulated GPU runs PTX only. Add -gencode "
               "arch=compute_80,code=compute_80 to nvcc's options.";
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  auto text = textOf(*best);
  if (!text) {
    sentence = "The compressed PTX in the fat binary is damaged. Build the program again.";
    return CUDA_ERROR_INVALID_IMAGE;
  }
  texts.push_back(std::move(*text));
  return CUDA_SUCCESS;
}

/// Whether machine code defines a function of this name.
bool defines(const std::string& code, std::string_view name) {
  const auto read = [&]<class T>(std::size_t offset, T& value) {
    const bool inside = offset <= code.size() && sizeof value <= code.size() - offset;
    if (inside) std::memcpy(&value, code.data() + offset, sizeof value);
    return inside;
  };
  Elf64_Ehdr header{};
  Elf64_Shdr table{}, names{};
  if (!read(0, header)) return false;
  for (unsigned i = 0; i < header.e_shnum && table.sh_type != SHT_SYMTAB; ++i) {
    if (!read(header.e_shoff + i * sizeof table, table)) return false;
  }
  if (table.sh_type != SHT_SYMTAB || !read(header.e_shoff + table.sh_link * sizeof names, names))
    return false;
  Elf64_Sym symbol{};
  for (std::size_t at = 0; at + sizeof symbol <= table.sh_size; at += sizeof symbol) {
    if (!read(table.sh_offset + at, symbol)) return false;
    const std::size_t text = names.sh_offset + symbol.st_name;
    if (symbol.st_shndx != SHN_UNDEF && text <= code.size() &&
        std::string_view(code).substr(text, name.size() + 1) == std::string(name) + '\0')
      return true;
  }
  return false;
}

/// Whether the fat binary is CUDA's device runtime (libcudadevrt.a), whose functions the engine
/// has.
bool isDeviceRuntime(const void* image) {
  bool found = false, looked = false;
  fatbin::eachEntry(wholeFatbin(image), [&](const Entry& entry, std::span<const std::byte>,
                                            std::span<const std::byte> payload) {
    if (entry.kind != fatbin::kElf || std::exchange(looked, true)) return;
    const auto code = fatbin::contentOf(entry, payload);
    found = code && defines(*code, "__cudaCDP2LaunchDeviceV2");
  });
  return found;
}

CUresult readWrapper(const Wrapper& wrapper, std::vector<std::string>& texts,
                     std::string& sentence) {
  if (wrapper.version == 2 && wrapper.elements != nullptr) {
    for (std::size_t i = 0; wrapper.elements[i] != nullptr; ++i) {
      if (i == kMostElements || !isFatbin(wrapper.elements[i])) {
        sentence =
            "The list of a relocatable program's fat binaries is damaged. Build the program again.";
        return CUDA_ERROR_INVALID_IMAGE;
      }
      if (isDeviceRuntime(wrapper.elements[i])) continue;
      const CUresult status = readFatbin(wrapper.elements[i], texts, sentence);
      if (status != CUDA_SUCCESS) return status;
    }
    if (!texts.empty()) return CUDA_SUCCESS;
  }
  if (wrapper.data == nullptr || !isFatbin(wrapper.data)) {
    sentence = "The wrapper points to no fat binary. Build the program again.";
    return CUDA_ERROR_INVALID_IMAGE;
  }
  return readFatbin(wrapper.data, texts, sentence);
}

/// An ELF file ends with its table of sections, or with a section.
std::size_t elfBytes(const void* image) {
  const auto header = load<Elf64_Ehdr>(image);
  const auto* base = static_cast<const std::byte*>(image);
  std::size_t end = header.e_shoff + header.e_shnum * sizeof(Elf64_Shdr);
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    const auto section = load<Elf64_Shdr>(base + header.e_shoff + i * sizeof(Elf64_Shdr));
    if (section.sh_type == SHT_PROGBITS)
      end = std::max<std::size_t>(end, section.sh_offset + section.sh_size);
  }
  return end;
}

/// The texts of all fat binaries that a file holds: one that the linker made, or one of the host.
CUresult readContained(std::span<const std::byte> file, std::vector<std::string>& texts,
                       std::string& sentence) {
  CUresult status = CUDA_SUCCESS;
  bool skipped = false;
  const bool whole = fatbin::eachFatbin(file, [&](std::span<const std::byte> part) {
    const bool runtime = isDeviceRuntime(part.data());
    skipped = skipped || runtime;
    if (status == CUDA_SUCCESS && !runtime) status = readFatbin(part.data(), texts, sentence);
  });
  if (!whole) {
    sentence = "The file is damaged: a length in it exceeds its size. Build it again.";
    return CUDA_ERROR_INVALID_IMAGE;
  }
  if (status != CUDA_SUCCESS || skipped || !texts.empty()) return status;
  sentence =
      "The image is machine code, and the simulated GPU runs PTX only. Load PTX, or a fat binary "
      "that holds some.";
  return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

CUresult readAny(const void* image, std::vector<std::string>& texts, std::string& sentence) {
  if (isWrapper(image)) return readWrapper(load<Wrapper>(image), texts, sentence);
  if (isFatbin(image)) return readFatbin(image, texts, sentence);
  if (isElf(image))
    return readContained({static_cast<const std::byte*>(image), elfBytes(image)}, texts, sentence);
  const auto* text = static_cast<const char*>(image);
  if (!looksLikePtx(text)) {
    sentence = "The image is neither PTX nor a fat binary.";
    return CUDA_ERROR_INVALID_IMAGE;
  }
  texts.emplace_back(text);
  return CUDA_SUCCESS;
}

CUresult readInput(CUjitInputType type, std::span<const std::byte> data,
                   std::vector<std::string>& texts, std::string& sentence) {
  const auto* text = reinterpret_cast<const char*>(data.data());
  switch (type) {
    case CU_JIT_INPUT_PTX:
      texts.emplace_back(text, strnlen(text, data.size()));
      if (looksLikePtx(texts.back().c_str())) return CUDA_SUCCESS;
      sentence = "The input is not PTX.";
      return CUDA_ERROR_INVALID_PTX;
    case CU_JIT_INPUT_FATBINARY:
      if (data.size() >= sizeof(Wrapper) && isWrapper(data.data()))
        return readWrapper(load<Wrapper>(data.data()), texts, sentence);
      [[fallthrough]];
    case CU_JIT_INPUT_CUBIN:
    case CU_JIT_INPUT_OBJECT:
    case CU_JIT_INPUT_LIBRARY: return readContained(data, texts, sentence);
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult checkTexts(CUresult status, const std::vector<std::string>& texts, std::string& sentence) {
  for (const std::string& text : texts) {
    if (status == CUDA_SUCCESS) status = checkPtxVersion(text, sentence);
    if (status == CUDA_SUCCESS) status = checkPtxTarget(text, sentence);
  }
  return status;
}

}  // namespace

CUresult readImage(const void* image, std::vector<std::string>& texts, std::string& sentence) {
  const CUresult status = readAny(image, texts, sentence);
  return checkTexts(status, texts, sentence);
}

CUresult readLinkInput(CUjitInputType type, std::span<const std::byte> data,
                       std::vector<std::string>& texts, std::string& sentence) {
  const CUresult status = readInput(type, data, texts, sentence);
  return checkTexts(status, texts, sentence);
}

}  // namespace simulator
