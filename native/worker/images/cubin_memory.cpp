#include "native/worker/images/cubin_memory.h"

#include <elf.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "native/worker/images/memory_sum.h"

namespace worker {

namespace {

constexpr std::uint64_t kMostOfLaunch = std::uint64_t{1} << 20;
// Section types without content in the file, besides SHT_NOBITS (seen in relocatable files of nvcc
// 13.0).
constexpr std::uint32_t kGlobal = SHT_LOPROC + 7, kLocal = SHT_LOPROC + 9,
                        kShared = SHT_LOPROC + 10, kSharedReserved = SHT_LOPROC + 21;
constexpr std::uint32_t kGlobalInit = SHT_LOPROC + 8;

struct Refusal {
  const char* reason;
};

bool isEmptyInFile(std::uint32_t type) {
  return type == SHT_NOBITS || type == kGlobal || type == kLocal || type == kShared ||
         type == kSharedReserved;
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> image) : image_(image), header_(load<Elf64_Ehdr>(0)) {}

  CubinMemory read() {
    checkHeader();
    readSections();
    std::uint64_t placed = 0;
    for (const Elf64_Shdr& section : sections_) placed = addMemory(placed, placedBytes(section));
    return {std::max(placed, segmentBytes()), nullptr, std::move(names_)};
  }

 private:
  template <class T>
  T load(std::uint64_t offset) const {
    require(offset <= image_.size() && sizeof(T) <= image_.size() - offset,
            "a header of the machine code points outside of it");
    T value;
    std::memcpy(&value, image_.data() + offset, sizeof value);
    return value;
  }

  static void require(bool holds, const char* reason) {
    if (!holds) throw Refusal{reason};
  }

  bool inside(std::uint64_t offset, std::uint64_t bytes) const {
    return offset <= image_.size() && bytes <= image_.size() - offset;
  }

  void checkHeader() const {
    const auto* identity = header_.e_ident;
    require(std::memcmp(identity, ELFMAG, SELFMAG) == 0, "the machine code is not an ELF file");
    require(identity[EI_CLASS] == ELFCLASS64 && identity[EI_DATA] == ELFDATA2LSB &&
                identity[EI_VERSION] == EV_CURRENT,
            "the machine code is not of the 64-bit little-endian kind");
    require(header_.e_machine == EM_CUDA && (header_.e_type == ET_EXEC || header_.e_type == ET_REL),
            "the ELF file is not for a GPU");
    require(header_.e_ehsize == sizeof(Elf64_Ehdr) && header_.e_shentsize == sizeof(Elf64_Shdr) &&
                (header_.e_phnum == 0 || header_.e_phentsize == sizeof(Elf64_Phdr)),
            "the headers of the machine code have a wrong size");
    require(header_.e_shnum > 0 && header_.e_shnum < SHN_LORESERVE && header_.e_phnum < PN_XNUM,
            "the machine code has no sections, or too many");
    require(inside(header_.e_shoff, header_.e_shnum * sizeof(Elf64_Shdr)) &&
                inside(header_.e_phoff, header_.e_phnum * sizeof(Elf64_Phdr)),
            "a table of the machine code points outside of it");
    require(header_.e_shstrndx < header_.e_shnum, "the machine code has no names of sections");
  }

  void readSections() {
    sections_.reserve(header_.e_shnum);
    for (unsigned i = 0; i < header_.e_shnum; ++i)
      sections_.push_back(load<Elf64_Shdr>(header_.e_shoff + i * sizeof(Elf64_Shdr)));
    sectionNames_ = namesIn(sections_[header_.e_shstrndx]);
    require(!sectionNames_.empty(), "the names of the sections are damaged");
    for (const Elf64_Shdr& section : sections_) checkSection(section);
  }

  /// Nothing if it is not a table of names that ends.
  std::string_view namesIn(const Elf64_Shdr& section) const {
    if (section.sh_type != SHT_STRTAB || section.sh_size == 0 ||
        !inside(section.sh_offset, section.sh_size) ||
        image_[section.sh_offset + section.sh_size - 1] != std::byte{0})
      return {};
    return {reinterpret_cast<const char*>(image_.data()) + section.sh_offset, section.sh_size};
  }

  void checkSection(const Elf64_Shdr& section) const {
    require(section.sh_name < sectionNames_.size(),
            "the name of a section points outside of the machine code");
    if (section.sh_type == SHT_NULL) return;
    require(isEmptyInFile(section.sh_type) || inside(section.sh_offset, section.sh_size),
            "a section of the machine code points outside of it");
    require((section.sh_flags & (SHF_ALLOC | SHF_COMPRESSED)) != (SHF_ALLOC | SHF_COMPRESSED),
            "a section of the machine code is compressed");
    require(section.sh_addralign <= 1 || std::has_single_bit(section.sh_addralign),
            "the alignment of a section is not a power of two");
    require(section.sh_type != SHT_SYMTAB || section.sh_entsize == sizeof(Elf64_Sym),
            "the symbols of the machine code have a wrong size");
    require(section.sh_link < header_.e_shnum,
            "a section of the machine code belongs to one that is not there");
  }

  std::uint64_t placedBytes(const Elf64_Shdr& section) {
    if (section.sh_type == SHT_NULL) return 0;
    if (section.sh_type == SHT_SYMTAB) return readSymbols(section);
    // With all names behind it.
    const std::string_view name = sectionNames_.substr(section.sh_name);
    // This memory belongs to a launch, not to the image. No GPU has more of either per block or
    // thread. A variable's section is one, whatever its name.
    const bool isVariable = section.sh_type == kGlobal || section.sh_type == kGlobalInit;
    if (!isVariable && (name.starts_with(".nv.shared") || name.starts_with(".nv.local"))) {
      require(section.sh_size <= kMostOfLaunch,
              "a section of shared or local memory is larger than any GPU has");
      return 0;
    }
    const bool placed = (section.sh_flags & SHF_ALLOC) != 0 || isEmptyInFile(section.sh_type) ||
                        section.sh_type == kGlobalInit || name.starts_with(".text") ||
                        name.starts_with(".nv.global") || name.starts_with(".nv.constant");
    return placed ? aligned(section.sh_size, section.sh_addralign) : 0;
  }

  /// Upper bound of the size with padding.
  static std::uint64_t aligned(std::uint64_t bytes, std::uint64_t alignment) {
    return bytes == 0 ? 0 : addMemory(bytes, std::max<std::uint64_t>(1, alignment) - 1);
  }

  /// Returns the bytes of common symbols, which the driver allocates when it links. A symbol's
  /// value is its alignment.
  std::uint64_t readSymbols(const Elf64_Shdr& table) {
    const std::string_view names = namesIn(sections_[table.sh_link]);
    require(!names.empty(), "the names of the symbols are damaged");
    namesBytes_ += names.size();
    symbolBytes_ += table.sh_size;
    require(namesBytes_ <= image_.size() && symbolBytes_ <= image_.size(),
            "tables of symbols or of their names overlap in the machine code");
    names_.push_back(names);
    std::uint64_t bytes = 0;
    for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = load<Elf64_Sym>(table.sh_offset + at);
      require(symbol.st_name < names.size(),
              "the name of a symbol points outside of the machine code");
      if (symbol.st_shndx == SHN_COMMON)
        bytes = addMemory(bytes, aligned(symbol.st_size, symbol.st_value));
    }
    return bytes;
  }

  std::uint64_t segmentBytes() const {
    std::uint64_t bytes = 0;
    for (unsigned i = 0; i < header_.e_phnum; ++i) {
      const auto segment = load<Elf64_Phdr>(header_.e_phoff + i * sizeof(Elf64_Phdr));
      require(inside(segment.p_offset, segment.p_filesz),
              "a segment of the machine code points outside of it");
      if (segment.p_type == PT_LOAD) bytes = addMemory(bytes, segment.p_memsz);
    }
    return bytes;
  }

  const std::span<const std::byte> image_;
  const Elf64_Ehdr header_;
  std::vector<Elf64_Shdr> sections_;
  std::string_view sectionNames_;
  std::vector<std::string_view> names_;  ///< of symbols
  std::uint64_t namesBytes_ = 0, symbolBytes_ = 0;
};

}  // namespace

CubinMemory cubinMemory(std::span<const std::byte> image) {
  try {
    return Reader(image).read();
  } catch (const Refusal& refusal) {
    return {0, refusal.reason, {}};
  }
}

}  // namespace worker
