#include "native/simulator/linked_image.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "native/fatbin/fatbin.h"
#include "native/simulator/machine.h"
#include "native/simulator/module.h"

namespace simulator {
namespace {

constexpr std::uint32_t kFatbinMagic = 0xba55ed50;
constexpr char kNames[] = "\0.shstrtab\0.nv_fatbin";
constexpr unsigned kNamesAt = 1, kFatbinAt = 11;  // in kNames

void pad(std::string& text) { text.resize((text.size() + 7) / 8 * 8); }

template <class T>
void append(std::string& to, const T& value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// A fat binary with one entry of plain PTX.
void appendFatbin(std::string& to, std::string text) {
  const int target = ptxVersionOf({text});
  text += '\0';
  pad(text);
  fatbin::Entry entry{};
  entry.kind = fatbin::kPtx;
  entry.version = 0x0101;
  entry.headerSize = sizeof entry;
  entry.payloadSize = text.size();
  entry.arch = static_cast<std::uint32_t>(std::min(target, static_cast<int>(computeCapability())));
  entry.flags = 0x11;  // 64 bits, Linux
  append(to, fatbin::Header{kFatbinMagic, 1, sizeof(fatbin::Header), sizeof entry + text.size()});
  append(to, entry);
  to += text;
}

Elf64_Ehdr header(std::size_t sections, std::size_t sectionsAt) {
  Elf64_Ehdr elf{};
  std::memcpy(elf.e_ident, ELFMAG, SELFMAG);
  elf.e_ident[EI_CLASS] = ELFCLASS64;
  elf.e_ident[EI_DATA] = ELFDATA2LSB;
  elf.e_ident[EI_VERSION] = EV_CURRENT;
  elf.e_type = ET_EXEC;
  elf.e_machine = EM_CUDA;
  elf.e_version = EV_CURRENT;
  elf.e_flags = computeCapability() << 8;  // where nvcc has the compute capability
  elf.e_ehsize = sizeof elf;
  elf.e_shoff = sectionsAt;
  elf.e_shentsize = sizeof(Elf64_Shdr);
  elf.e_shnum = static_cast<Elf64_Half>(sections);
  elf.e_shstrndx = 1;
  return elf;
}

}  // namespace

std::string linkedImage(std::span<const std::string> texts) {
  std::string image(sizeof(Elf64_Ehdr), '\0');
  std::array<Elf64_Shdr, 3> sections{};
  const auto add = [&](Elf64_Shdr& section, unsigned name, unsigned type, const auto& content) {
    section.sh_name = name;
    section.sh_type = type;
    section.sh_offset = image.size();
    section.sh_addralign = 8;
    content();
    section.sh_size = image.size() - section.sh_offset;
    pad(image);
  };
  add(sections[1], kNamesAt, SHT_STRTAB, [&] { image.append(kNames, sizeof kNames); });
  add(sections[2], kFatbinAt, SHT_PROGBITS, [&] {
    for (const std::string& text : texts) appendFatbin(image, text);
  });
  const Elf64_Ehdr elf = header(sections.size(), image.size());
  for (const Elf64_Shdr& section : sections) append(image, section);
  std::memcpy(image.data(), &elf, sizeof elf);
  return image;
}

}  // namespace simulator
