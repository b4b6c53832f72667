// The length of an image, and the images behind a pointer. test/fatbin tests that a fat binary of
// nvcc is taken as nvcc wrote it.
#include "interposer/code/image.h"

#include <doctest/doctest.h>
#include <elf.h>

#include <cstring>
#include <string>

namespace {

using interposer::ImageKind;

std::string fatbin(std::size_t contentBytes) {
  const std::uint32_t magic = wire::kFatbinMagic;
  const std::uint16_t version = 1;
  const std::uint16_t headerBytes = 16;
  const std::uint64_t bytes = contentBytes;
  std::string image;
  for (const auto& [data, size] : {std::pair<const void*, std::size_t>{&magic, 4},
                                   {&version, 2},
                                   {&headerBytes, 2},
                                   {&bytes, 8}}) {
    image.append(static_cast<const char*>(data), size);
  }
  return image + std::string(contentBytes, 'x');
}

/// An ELF file whose last bytes are those of a section, after a NOBITS section that claims more.
std::string elf() {
  std::string image(sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Shdr) + 100, '\0');
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_shoff = sizeof header;
  header.e_shnum = 2;
  header.e_shentsize = sizeof(Elf64_Shdr);
  Elf64_Shdr sections[2]{};
  sections[0].sh_type = SHT_PROGBITS;
  sections[0].sh_offset = sizeof header + sizeof sections;
  sections[0].sh_size = 100;
  sections[1].sh_type = SHT_NOBITS;
  sections[1].sh_offset = sections[0].sh_offset;
  sections[1].sh_size = 1 << 20;
  std::memcpy(image.data(), &header, sizeof header);
  std::memcpy(image.data() + sizeof header, sections, sizeof sections);
  return image;
}

struct Wrapper {
  std::uint32_t magic = wire::kWrapperMagic;
  std::uint32_t version = 1;
  const void* data = nullptr;
  const void* const* objects = nullptr;
};

}  // namespace

TEST_CASE("a text is an image that ends with its zero") {
  const std::string text = "\n.version 9.0\n";
  CHECK(interposer::imageKind(text.c_str()) == ImageKind::text);
  CHECK(interposer::imageBytes(text.c_str()) == text.size() + 1);
}

TEST_CASE("what is neither text, fat binary nor ELF is no image") {
  CHECK(interposer::imageKind(nullptr) == ImageKind::none);
  CHECK(interposer::imageKind("\x01\x02\x03\x04") == ImageKind::none);
  CHECK(interposer::imagesOf("\x01\x02\x03\x04").empty());
}

TEST_CASE("a fat binary and an ELF file tell their length") {
  const std::string binary = fatbin(48);
  CHECK(interposer::imageKind(binary.data()) == ImageKind::fatbin);
  CHECK(interposer::imageBytes(binary.data()) == binary.size());
  const std::string cubin = elf();
  CHECK(interposer::imageKind(cubin.data()) == ImageKind::elf);
  CHECK(interposer::imageBytes(cubin.data()) == cubin.size());
}

TEST_CASE("a wrapper lists several images from version 2 on") {
  const std::string binary = fatbin(48), cubin = elf();
  Wrapper wrapper{.data = binary.data()};
  CHECK(interposer::imagesOf(&wrapper).size() == 1);
  CHECK(interposer::imagesOf(&wrapper)[0].size() == binary.size());
  const void* const objects[] = {cubin.data(), binary.data(), nullptr};
  wrapper.objects = objects;
  CHECK(interposer::imagesOf(&wrapper).size() == 1);  // version 1 has no list
  wrapper.version = 2;
  const auto images = interposer::imagesOf(&wrapper);
  REQUIRE(images.size() == 3);
  CHECK(images[1].size() == cubin.size());
  CHECK(images[2].size() == binary.size());
}
