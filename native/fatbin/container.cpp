#include "native/fatbin/container.h"

#include <ar.h>
#include <elf.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "native/fatbin/fatbin.h"

namespace fatbin {

namespace {

using Bytes = std::span<const std::byte>;
using VisitFatbin = std::function<void(Bytes)>;

constexpr std::uint32_t kMagic = 0xba55ed50;

bool inside(Bytes file, std::uint64_t offset, std::uint64_t bytes) {
  return offset <= file.size() && bytes <= file.size() - offset;
}

template <class T>
bool load(Bytes file, std::uint64_t offset, T& value) {
  if (!inside(file, offset, sizeof value)) return false;
  std::memcpy(&value, file.data() + offset, sizeof value);
  return true;
}

bool beginsWith(Bytes file, std::string_view magic) {
  return file.size() >= magic.size() && std::memcmp(file.data(), magic.data(), magic.size()) == 0;
}

/// Fat binaries one behind the other, with zeros between them.
bool visitAll(Bytes section, const VisitFatbin& visit) {
  while (!section.empty()) {
    Header header;
    std::uint32_t word = 0;
    if (!load(section, 0, word)) return true;  // less than a word is padding
    if (word == 0) {
      section = section.subspan(sizeof word);
      continue;
    }
    if (word != kMagic || !load(section, 0, header)) return false;
    if (header.size > kMostBytes) return false;
    const std::uint64_t bytes = header.headerSize + header.size;
    if (header.headerSize < sizeof header || bytes > section.size()) return false;
    visit(section.first(bytes));
    section = section.subspan(bytes);
  }
  return true;
}

/// `names`: the table of names from that of the section on.
bool holdsFatbins(std::string_view names) {
  const auto begins = [&](std::string_view name) {
    return names.starts_with(name) && (names.size() == name.size() || names[name.size()] == '\0');
  };
  return begins(".nv_fatbin") || begins("__nv_relfatbin");
}

/// Refuses sections that together are longer than the file: callers would make as many copies of
/// what overlaps.
bool visitElf(Bytes file, const VisitFatbin& visit) {
  Elf64_Ehdr header;
  Elf64_Shdr names;
  if (!load(file, 0, header) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shstrndx >= header.e_shnum ||
      !load(file, header.e_shoff + header.e_shstrndx * sizeof names, names) ||
      !inside(file, names.sh_offset, names.sh_size))
    return false;
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + names.sh_offset,
                              names.sh_size);
  std::uint64_t left = file.size();
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    if (!load(file, header.e_shoff + i * sizeof section, section)) return false;
    if (section.sh_name >= text.size()) return false;
    if (!holdsFatbins(text.substr(section.sh_name))) continue;
    if (section.sh_type == SHT_NOBITS || !inside(file, section.sh_offset, section.sh_size) ||
        section.sh_size > left ||
        !visitAll(file.subspan(section.sh_offset, section.sh_size), visit))
      return false;
    left -= section.sh_size;
  }
  return true;
}

/// Members that are no objects, such as the table of symbols, hold no fat binaries.
bool visitArchive(Bytes file, const VisitFatbin& visit) {
  for (std::uint64_t at = SARMAG; at < file.size();) {
    ar_hdr member;
    if (!load(file, at, member) || std::memcmp(member.ar_fmag, ARFMAG, 2) != 0) return false;
    const std::string size(member.ar_size, sizeof member.ar_size);
    const std::uint64_t bytes = std::strtoull(size.c_str(), nullptr, 10);
    at += sizeof member;
    if (!inside(file, at, bytes)) return false;
    const Bytes content = file.subspan(at, bytes);
    if (beginsWith(content, {ELFMAG, SELFMAG}) && !visitElf(content, visit)) return false;
    at += bytes + bytes % 2;
  }
  return true;
}

}  // namespace

bool eachFatbin(Bytes file, const VisitFatbin& visit) {
  if (beginsWith(file, {ELFMAG, SELFMAG})) return visitElf(file, visit);
  if (beginsWith(file, {ARMAG, SARMAG})) return visitArchive(file, visit);
  return visitAll(file, visit);
}

}  // namespace fatbin
