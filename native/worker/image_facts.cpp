#include "native/worker/image_facts.h"

#include <elf.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <string_view>

#include "native/fatbin/fatbin.h"
#include "wire/image.h"

namespace worker {

namespace {

constexpr std::uint64_t kMost = std::uint64_t{1} << 50;  ///< more than any GPU has, little enough to be added up

std::uint64_t add(std::uint64_t one, std::uint64_t other) { return std::min(kMost, std::min(kMost, one) + std::min(kMost, other)); }

template <class T>
bool load(std::span<const std::byte> image, std::uint64_t offset, T& value) {
  if (offset > image.size() || sizeof value > image.size() - offset) return false;
  std::memcpy(&value, image.data() + offset, sizeof value);
  return true;
}

/// Shared and local memory belong to a launch, not to the image.
bool isOfLaunch(std::string_view section) { return section.starts_with(".nv.shared") || section.starts_with(".nv.local"); }

std::string_view nameOf(std::span<const std::byte> image, const Elf64_Shdr& names, std::uint32_t offset) {
  if (names.sh_offset > image.size() || offset >= names.sh_size || names.sh_size > image.size() - names.sh_offset) return {};
  const auto* text = reinterpret_cast<const char*>(image.data() + names.sh_offset + offset);
  return {text, strnlen(text, names.sh_size - offset)};
}

/// What the loader places: sections that are allocated, and everything without content of its own, whatever its flags say.
std::uint64_t elfMemory(std::span<const std::byte> image) {
  Elf64_Ehdr header;
  Elf64_Shdr names{};
  if (!load(image, 0, header) || header.e_shentsize != sizeof(Elf64_Shdr)) return 0;
  load(image, header.e_shoff + std::uint64_t{header.e_shstrndx} * sizeof names, names);
  std::uint64_t bytes = 0;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    if (!load(image, header.e_shoff + std::uint64_t{i} * sizeof section, section)) break;
    const bool placed = (section.sh_flags & SHF_ALLOC) != 0 || section.sh_type == SHT_NOBITS;
    if (placed && !isOfLaunch(nameOf(image, names, section.sh_name))) bytes = add(bytes, section.sh_size);
  }
  return bytes;
}

/// The words of PTX, one after the other; brackets and commas are words of their own.
class Words {
 public:
  explicit Words(std::string_view text) : rest_(text) {}

  std::string_view next() {
    skip();
    if (rest_.empty()) return {};
    const auto isPart = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '$' || c == '%'; };
    std::size_t length = 1;
    if (isPart(rest_.front())) {
      while (length < rest_.size() && isPart(rest_[length])) ++length;
    }
    const std::string_view word = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return word;
  }

 private:
  void skip() {
    for (;;) {
      while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_.front()))) rest_.remove_prefix(1);
      if (rest_.starts_with("//"))
        rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
      else if (rest_.starts_with("/*"))
        rest_.remove_prefix(std::min(rest_.size(), rest_.find("*/", 2) == rest_.npos ? rest_.size() : rest_.find("*/", 2) + 2));
      else
        return;
    }
  }

  std::string_view rest_;
};

/// Bytes of one element of a type such as .b8 or .f64; 0 when the word is no type.
std::uint64_t typeBytes(std::string_view word) {
  if (word.size() < 3 || word[0] != '.' || std::strchr("busf", word[1]) == nullptr) return 0;
  std::uint64_t bits = 0;
  for (const char c : word.substr(2)) {
    if (!std::isdigit(static_cast<unsigned char>(c)) || bits > 128) return 0;
    bits = bits * 10 + (c - '0');
  }
  return bits / 8;
}

std::uint64_t numberOf(std::string_view word) {
  std::uint64_t number = 0;
  for (const char c : word) number = std::isdigit(static_cast<unsigned char>(c)) ? std::min(kMost, number * 10 + (c - '0')) : number;
  return number;
}

/// One declaration behind .global or .const, up to its `;`, `=` or a word that says that it is an instruction's.
std::uint64_t declaredBytes(Words& words) {
  std::uint64_t bytes = 0;
  for (std::string_view word = words.next(); !word.empty() && word != ";" && word != "="; word = words.next()) {
    if (const std::uint64_t element = typeBytes(word); element > 0) bytes = element;
    if (word == ".v2" || word == ".v4") bytes = add(bytes, bytes);
    if (word == "[") {
      const std::uint64_t count = numberOf(words.next());
      bytes = bytes == 0 || count == 0 ? bytes : bytes > kMost / count ? kMost : bytes * count;
    }
  }
  return bytes;
}

/// Variables of PTX; its code is small beside them and not known before it is compiled.
std::uint64_t textMemory(std::string_view text) {
  std::uint64_t bytes = 0;
  Words words(text);
  std::string_view before;
  for (std::string_view word = words.next(); !word.empty(); before = word, word = words.next()) {
    if ((word == ".global" || word == ".const") && before != ".extern" && before != ".ptr") bytes = add(bytes, declaredBytes(words));
  }
  return bytes;
}

/// A name that ends so: code calls them plainly, or as a part of something longer (`__nv_aligned_device_malloc`).
bool names(std::string_view content, std::string_view name) {
  for (std::size_t at = content.find(name); at != content.npos; at = content.find(name, at + 1)) {
    const char next = at + name.size() < content.size() ? content[at + name.size()] : '\0';
    if (!std::isalnum(static_cast<unsigned char>(next)) && next != '_') return true;
  }
  return false;
}

ImageFacts factsOf(std::string_view content, std::uint64_t memory) { return {memory, names(content, "vprintf"), names(content, "malloc")}; }

ImageFacts fatbinFacts(std::span<const std::byte> image) {
  ImageFacts most;
  const auto add = [&](const ImageFacts& facts) {
    most.memory = std::max(most.memory, facts.memory);
    most.mayPrint = most.mayPrint || facts.mayPrint;
    most.mayAllocate = most.mayAllocate || facts.mayAllocate;
  };
  constexpr ImageFacts kUnknown{0, true, true};
  const bool whole = fatbin::eachEntry(image, [&](const fatbin::Entry& entry, std::span<const std::byte> payload) {
    const auto content = fatbin::contentOf(entry, payload);
    if (!content) return add(kUnknown);
    add(factsOf(*content, entry.kind == fatbin::kPtx ? textMemory(*content) : elfMemory(std::as_bytes(std::span(*content)))));
  });
  if (!whole) add(kUnknown);
  return most;
}

}  // namespace

ImageFacts inspectImage(std::span<const std::byte> image) {
  std::uint32_t magic = 0;
  if (load(image, 0, magic) && magic == wire::kFatbinMagic) return fatbinFacts(image);
  const std::string_view text(reinterpret_cast<const char*>(image.data()), image.size());
  const bool elf = magic != 0 && std::memcmp(image.data(), ELFMAG, SELFMAG) == 0;
  return factsOf(text, elf ? elfMemory(image) : textMemory(text));
}

}  // namespace worker
