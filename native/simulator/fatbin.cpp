#include "native/simulator/fatbin.h"

#include <elf.h>
#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "native/simulator/attributes.h"

namespace simulator {
namespace {

constexpr std::uint32_t kWrapperMagic = 0x466243b1;
constexpr std::uint32_t kFatbinMagic = 0xba55ed50;
constexpr std::uint64_t kMostBytes = std::uint64_t{4} << 30;  ///< no image is larger; a header that says so is damaged
constexpr std::size_t kMostElements = 1 << 16;

struct Wrapper {
  std::uint32_t magic, version;
  const void* data;
  const void* const* elements;  ///< version 2: the fat binaries of the object files, ended by null
};

struct Header {
  std::uint32_t magic;
  std::uint16_t version, headerSize;
  std::uint64_t size;
};

struct Entry {
  std::uint16_t kind, version;
  std::uint32_t headerSize;
  std::uint64_t payloadSize;
  std::uint32_t compressedSize, optionsOffset;
  std::uint16_t minor, major;
  std::uint32_t arch, nameOffset, nameSize;
  std::uint64_t flags, reserved, uncompressedSize;
};
static_assert(sizeof(Header) == 16 && sizeof(Entry) == 64 && sizeof(Wrapper) == 24);

constexpr std::uint16_t kPtx = 1;
constexpr std::uint64_t kLz4 = 0x2000, kZstd = 0x8000, kArchSpecific = 0x100000, kFamily = 0x200000;

template <class T>
T load(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// Compares byte by byte: what lies at `image` may be as short as an empty text.
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

/// PTX runs on its own and later compute capabilities; text for one architecture's own features only there, a family's within it.
bool fits(const Entry& entry) {
  if (entry.kind != kPtx || entry.arch > kComputeCapability) return false;
  if ((entry.flags & kArchSpecific) != 0) return entry.arch == kComputeCapability;
  if ((entry.flags & kFamily) != 0) return entry.arch / 10 == kComputeCapability / 10;
  return true;
}

bool better(const Entry& entry, const Entry& than) {
  const auto rank = [](const Entry& e) { return std::pair(e.arch, (e.flags & (kArchSpecific | kFamily)) != 0); };
  return rank(entry) > rank(than);
}

/// Calls visit(entry, payload) for each entry; false when a length leads out of the container.
template <class Visit>
bool eachEntry(const std::byte* fatbin, Visit&& visit) {
  const auto header = load<Header>(fatbin);
  if (header.headerSize < sizeof(Header) || header.size > kMostBytes) return false;
  std::span<const std::byte> rest(fatbin + header.headerSize, header.size);
  while (rest.size() >= sizeof(Entry)) {
    const auto entry = load<Entry>(rest.data());
    if (entry.headerSize < sizeof(Entry) || entry.headerSize > rest.size() || entry.payloadSize > rest.size() - entry.headerSize)
      return false;
    visit(entry, rest.subspan(entry.headerSize, entry.payloadSize));
    rest = rest.subspan(entry.headerSize + entry.payloadSize);
  }
  return true;
}

/// The text of a chosen entry; nothing when it does not decompress to what its header says.
std::optional<std::string> textOf(const Choice& choice) {
  const auto* bytes = reinterpret_cast<const char*>(choice.payload.data());
  const auto& entry = choice.entry;
  if ((entry.flags & (kLz4 | kZstd)) == 0) return std::string(bytes, strnlen(bytes, choice.payload.size()));
  if (entry.compressedSize > choice.payload.size() || entry.uncompressedSize > kMostBytes) return std::nullopt;
  std::string text(entry.uncompressedSize, 0);
  if ((entry.flags & kLz4) != 0) {
    if (text.size() > LZ4_MAX_INPUT_SIZE) return std::nullopt;
    const int length = LZ4_decompress_safe(bytes, text.data(), static_cast<int>(entry.compressedSize), static_cast<int>(text.size()));
    if (length != static_cast<int>(text.size())) return std::nullopt;
  } else if (ZSTD_decompress(text.data(), text.size(), bytes, entry.compressedSize) != text.size()) {
    return std::nullopt;
  }
  text.resize(strnlen(text.data(), text.size()));
  return text;
}

CUresult readFatbin(const void* fatbin, std::vector<std::string>& texts, std::string& sentence) {
  std::optional<Choice> best;
  std::string machineCode;
  const bool whole = eachEntry(static_cast<const std::byte*>(fatbin), [&](const Entry& entry, std::span<const std::byte> payload) {
    if (entry.kind != kPtx) machineCode += (machineCode.empty() ? "sm_" : ", sm_") + std::to_string(entry.arch);
    if (fits(entry) && (!best || better(entry, best->entry))) best = {entry, payload};
  });
  if (!whole) {
    sentence = "The fat binary is damaged: a length in it leads outside. Build the program again.";
    return CUDA_ERROR_INVALID_IMAGE;
  }
  if (!best) {
    sentence = "The fat binary holds no PTX for compute capability 9.0 or lower" +
               (machineCode.empty() ? std::string() : " (machine code for " + machineCode + ")") +
               ", and the simulated GPU runs PTX only. Add -gencode arch=compute_80,code=compute_80 to nvcc's options.";
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

CUresult readWrapper(const Wrapper& wrapper, std::vector<std::string>& texts, std::string& sentence) {
  if (wrapper.version == 2 && wrapper.elements != nullptr) {
    for (std::size_t i = 0; wrapper.elements[i] != nullptr; ++i) {
      if (i == kMostElements || !isFatbin(wrapper.elements[i])) {
        sentence = "The list of a relocatable program's fat binaries is damaged. Build the program again.";
        return CUDA_ERROR_INVALID_IMAGE;
      }
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

/// PTX begins with comments and .version.
bool looksLikePtx(const char* text) {
  for (;;) {
    while (std::isspace(static_cast<unsigned char>(*text))) ++text;
    if (std::strncmp(text, "//", 2) == 0) {
      text += std::strcspn(text, "\n");
    } else if (std::strncmp(text, "/*", 2) == 0) {
      const char* end = std::strstr(text + 2, "*/");
      if (end == nullptr) return false;
      text = end + 2;
    } else {
      return *text == '.';
    }
  }
}

std::size_t elfBytes(const void* image) {
  const auto header = load<Elf64_Ehdr>(image);
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return 0;
  std::uint64_t end = sizeof header;
  const auto* bytes = static_cast<const std::byte*>(image);
  end = std::max(end, header.e_shoff + std::uint64_t{header.e_shnum} * header.e_shentsize);
  end = std::max(end, header.e_phoff + std::uint64_t{header.e_phnum} * header.e_phentsize);
  if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shoff > kMostBytes) return static_cast<std::size_t>(end);
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    const auto section = load<Elf64_Shdr>(bytes + header.e_shoff + i * sizeof(Elf64_Shdr));
    if (section.sh_type != SHT_NOBITS) end = std::max(end, section.sh_offset + section.sh_size);
  }
  return end > kMostBytes ? 0 : static_cast<std::size_t>(end);
}

}  // namespace

CUresult readImage(const void* image, std::vector<std::string>& texts, std::string& sentence) {
  if (isWrapper(image)) return readWrapper(load<Wrapper>(image), texts, sentence);
  if (isFatbin(image)) return readFatbin(image, texts, sentence);
  if (isElf(image)) {
    sentence = "The image is machine code, and the simulated GPU runs PTX only. Load PTX, or a fat binary that holds some.";
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  const auto* text = static_cast<const char*>(image);
  if (!looksLikePtx(text)) {
    sentence = "The image is neither PTX nor a fat binary.";
    return CUDA_ERROR_INVALID_IMAGE;
  }
  texts.emplace_back(text);
  return CUDA_SUCCESS;
}

std::size_t imageBytes(const void* image) {
  if (isWrapper(image)) {
    const auto wrapper = load<Wrapper>(image);
    return wrapper.data == nullptr || isWrapper(wrapper.data) ? 0 : imageBytes(wrapper.data);
  }
  if (isFatbin(image)) {
    const auto header = load<Header>(image);
    return header.size > kMostBytes ? 0 : header.headerSize + header.size;
  }
  if (isElf(image)) return elfBytes(image);
  const auto* text = static_cast<const char*>(image);
  return looksLikePtx(text) ? std::strlen(text) + 1 : 0;
}

}  // namespace simulator
