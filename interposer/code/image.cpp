#include "interposer/code/image.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

namespace interposer {

namespace {

constexpr std::uint32_t kElfMagic = 0x464c457f;

/// __fatBinC_Wrapper_t as nvcc lays it out in .nvFatBinSegment.
struct Wrapper {
  std::uint32_t magic;
  std::uint32_t version;
  const void* data;
  const void* const* objects;  ///< version 2: a null-terminated list of relocatable fat binaries
};

struct FatbinHeader {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t headerBytes;
  std::uint64_t bytes;  ///< of what follows the header
};
static_assert(sizeof(FatbinHeader) == 16);

std::uint32_t magicOf(const void* image) {
  std::uint32_t magic = 0;
  std::memcpy(&magic, image, sizeof magic);
  return magic;
}

/// Sections without content in the file. The numbers are NVIDIA's: global, local and shared memory
/// of relocatable code.
bool isEmptyInFile(std::uint32_t type) {
  return type == SHT_NOBITS || type == SHT_LOPROC + 7 || type == SHT_LOPROC + 9 ||
         type == SHT_LOPROC + 10 || type == SHT_LOPROC + 21;
}

/// An ELF file ends with whatever lies last: its section headers, program headers, or a section's
/// bytes.
std::size_t elfBytes(const void* image) {
  const auto* base = static_cast<const std::byte*>(image);
  Elf64_Ehdr header;
  std::memcpy(&header, base, sizeof header);
  std::size_t end = std::max<std::size_t>(
      {sizeof header, header.e_shoff + std::size_t{header.e_shnum} * header.e_shentsize,
       header.e_phoff + std::size_t{header.e_phnum} * header.e_phentsize});
  for (unsigned i = 0; i < header.e_shnum && header.e_shentsize == sizeof(Elf64_Shdr); ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, base + header.e_shoff + i * sizeof section, sizeof section);
    if (!isEmptyInFile(section.sh_type))
      end = std::max<std::size_t>(end, section.sh_offset + section.sh_size);
  }
  return end;
}

std::size_t fatbinBytes(const void* image) {
  FatbinHeader header;
  std::memcpy(&header, image, sizeof header);
  return header.headerBytes + header.bytes;
}

bool looksLikeText(const void* image) {
  const auto* text = static_cast<const unsigned char*>(image);
  return *text == '\n' || *text == '\r' || *text == '\t' || (*text >= ' ' && *text < 0x7f);
}

}  // namespace

ImageKind imageKind(const void* image) {
  if (image == nullptr) return ImageKind::none;
  switch (magicOf(image)) {
    case wire::kWrapperMagic: return ImageKind::wrapper;
    case wire::kFatbinMagic: return ImageKind::fatbin;
    case kElfMagic: return ImageKind::elf;
    default: return looksLikeText(image) ? ImageKind::text : ImageKind::none;
  }
}

std::size_t imageBytes(const void* image) {
  switch (imageKind(image)) {
    case ImageKind::fatbin: return fatbinBytes(image);
    case ImageKind::elf: return elfBytes(image);
    case ImageKind::text: return std::strlen(static_cast<const char*>(image)) + 1;
    default: return 0;
  }
}

std::vector<std::span<const std::byte>> imagesOf(const void* image) {
  std::vector<std::span<const std::byte>> images;
  const auto add = [&](const void* data) {
    const std::size_t bytes = imageBytes(data);
    if (bytes > 0) images.emplace_back(static_cast<const std::byte*>(data), bytes);
  };
  if (imageKind(image) != ImageKind::wrapper) return add(image), images;
  Wrapper wrapper;
  std::memcpy(&wrapper, image, sizeof wrapper);
  add(wrapper.data);
  if (images.empty() || wrapper.version < 2 || wrapper.objects == nullptr) return images;
  for (const void* const* object = wrapper.objects; *object != nullptr; ++object) add(*object);
  return images;
}

}  // namespace interposer
