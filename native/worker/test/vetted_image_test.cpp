// Which images the driver may see, as what, and their facts: variables of PTX as they are declared,
// sections of machine code, the largest of the entries of a fat binary.
#include "native/worker/images/vetted_image.h"

#include <doctest/doctest.h>
#include <elf.h>
#include <lz4.h>
#include <zstd.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "native/fatbin/fatbin.h"
#include "wire/image.h"

namespace {

constexpr std::uint64_t kGranularity = 512;  ///< of a variable of PTX

std::unique_ptr<worker::VettedImage> vet(const std::vector<std::string>& images) {
  std::vector<std::span<const std::byte>> parts;
  for (const std::string& image : images) parts.push_back(std::as_bytes(std::span(image)));
  return std::make_unique<worker::VettedImage>(parts);
}

CUresult status(const std::string& image) { return vet({image})->status(); }
bool refused(const std::string& image) {
  return status(image) == CUDA_ERROR_INVALID_IMAGE && !vet({image})->sentence().empty();
}
worker::ImageFacts facts(const std::string& image) {
  const auto vetted = vet({image});
  CHECK(vetted->status() == CUDA_SUCCESS);
  return vetted->facts();
}
std::uint64_t memory(const std::string& image) { return facts(image).memory; }
bool mayPrint(const std::string& image) { return facts(image).mayPrint; }
bool mayAllocate(const std::string& image) { return facts(image).mayAllocate; }

/// PTX text with its end.
std::string ptx(const std::string& declarations) {
  return "\n.version 8.0\n.target sm_80\n.address_size 64\n" + declarations + std::string(1, '\0');
}

/// The bytes of the declarations, or -1 if they are refused.
std::int64_t declared(const std::string& declarations) {
  const auto vetted = vet({ptx(declarations)});
  if (vetted->status() == CUDA_SUCCESS) return static_cast<std::int64_t>(vetted->facts().memory);
  CHECK(vetted->status() == CUDA_ERROR_INVALID_PTX);
  CHECK(!vetted->sentence().empty());
  CHECK(vetted->pointer() == nullptr);
  return -1;
}

template <class T>
void append(std::string& image, const T& value) {
  image.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string fatbinOf(const std::vector<std::pair<fatbin::Entry, std::string>>& entries) {
  std::string content;
  for (auto [entry, payload] : entries) {
    if (entry.headerSize == 0) entry.headerSize = sizeof entry;
    entry.payloadSize = payload.size();
    append(content, entry);
    content += payload;
  }
  std::string image;
  append(image, fatbin::Header{wire::kFatbinMagic, 1, sizeof(fatbin::Header), content.size()});
  return image + content;
}

std::string fatbinOf(const std::string& text, std::uint16_t kind = fatbin::kPtx) {
  fatbin::Entry entry{};
  entry.kind = kind;
  return fatbinOf({{entry, text}});
}

std::string compressed(const std::string& text, std::uint64_t flags, std::uint64_t claimed) {
  std::string packed(ZSTD_compressBound(text.size()) + 1024, 0);
  if ((flags & fatbin::kZstd) != 0)
    packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 1));
  else
    packed.resize(LZ4_compress_default(text.data(), packed.data(), static_cast<int>(text.size()),
                                       static_cast<int>(packed.size())));
  fatbin::Entry entry{};
  entry.kind = fatbin::kPtx;
  entry.flags = flags;
  entry.compressedSize = static_cast<std::uint32_t>(packed.size());
  entry.uncompressedSize = claimed;
  return fatbinOf({{entry, packed}});
}

struct Elf {
  Elf64_Ehdr header{};
  Elf64_Shdr sections[4]{};
  Elf64_Sym symbol{};
  std::string names = std::string("\0.nv.global\0.nv.shared.k\0.symtab\0", 33);

  explicit Elf(std::uint64_t globalBytes = 1 << 20, std::uint64_t sharedBytes = 4096) {
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_EXEC;
    header.e_machine = EM_CUDA;
    header.e_ehsize = sizeof header;
    header.e_shoff = sizeof header;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = 4;
    header.e_shstrndx = 2;
    sections[0] = {.sh_name = 1,
                   .sh_type = SHT_NOBITS,
                   .sh_size = globalBytes};  // no flag: the loader decides by the name
    sections[1] = {
        .sh_name = 12, .sh_type = SHT_NOBITS, .sh_flags = SHF_ALLOC, .sh_size = sharedBytes};
    sections[2] = {.sh_type = SHT_STRTAB,
                   .sh_offset = sizeof header + sizeof sections + sizeof symbol,
                   .sh_size = names.size()};
    sections[3] = {.sh_name = 25,
                   .sh_type = SHT_SYMTAB,
                   .sh_offset = sizeof header + sizeof sections,
                   .sh_size = sizeof symbol,
                   .sh_link = 2,
                   .sh_entsize = sizeof symbol};
  }
  std::string image() const {
    std::string image;
    append(image, header);
    append(image, sections);
    append(image, symbol);
    return image + names;
  }
};

std::string elf(std::uint64_t globalBytes, std::uint64_t sharedBytes) {
  return Elf(globalBytes, sharedBytes).image();
}

template <class Change>
std::string changed(Change change) {
  Elf elf;
  change(elf);
  return elf.image();
}

TEST_CASE("variables of PTX have the size of their declaration") {
  CHECK(declared("") == 0);
  CHECK(declared(".visible .global .align 4 .b8 big[1073741824];\n") == 1073741824);
  CHECK(declared(".global .align 8 .f64 one;\n.const .align 4 .b32 table[300][5] = {1, 2};\n") ==
        512 + 6144);
  CHECK(declared("// .global .b8 comment[7];\n/* .global .b8 no[9]; */\n") == 0);
  CHECK(declared(".visible .entry k(.param .u64 .ptr .global .align 8 k_param_0)\n{\n "
                 "ld.global.f32 %f1, [%rd1];\n ret;\n}\n") == 0);
  CHECK(declared(".visible .entry k()\n{\n .loc 1 2 3\n ld.global.f32 %f1, [%rd1];\n @!%p1 "
                 "st.const.v4.f32 [x], {%f1, %f2};\nL:\n ret;\n}") == 0);
  CHECK(declared(".global .b8 a[100000], b[100000];") == 2 * 100352);
  CHECK(declared(".global .v4 .f32 a[1024];") == 16384);
  CHECK(declared(".global .b128 a[1024];") == 16384);
  CHECK(declared(".global .attribute(.managed) .align 8 .b8 a[1024];") == 1024);
  CHECK(declared(".global .b8 a[] = {1, 2, 3};") == 512);
  CHECK(declared(".global .b32 a[][1024] = {{1}, {2, 3}};") == 8192);
  CHECK(declared(".global .b64 a[1] = {0xFF(generic(b)+4)};\n.weak .global .b64 c = b - 4;") ==
        1024);
  CHECK(declared(".weak .global .u32 a[1024];.common .global .u32 b[1024];") == 8192);
}

// Exploits, and texts like them.
TEST_CASE("a hidden size is found") {
  for (const char* size : {"[0x40000000]", "[0X40000000]", "[0x40000000U]", "[010000000000]",
                           "[0b1000000000000000000000000000000]", "[1073741824U]",
                           "[1024][1024][1024]", "[32768][0x8000]"}) {
    CHECK(declared(std::string(".global .b8 a") + size + ";") == 1 << 30);
  }
  const std::string big = ".global .b8 a[1073741824];";
  CHECK(declared(".file 1 \"/*\"\n" + big + "\n.file 2 \"*/\"\n") == 1 << 30);
  CHECK(declared(".file 1 \"//\" " + big) == 1 << 30);
  CHECK(declared("/* /* */ " + big) == 1 << 30);
  CHECK(declared("/*/ */" + big) == 1 << 30);
  CHECK(declared("// \\\n" + big) == 1 << 30);
  CHECK(declared("// \r" + big) == 0);
  CHECK(declared(".global.b8 a[1073741824];") == 1 << 30);
  CHECK(declared(".visible.global.align 4.b8 a[1];") == -1);
  CHECK(declared(".extern .global .b8 a[1073741824];") ==
        1 << 30);  // ptxas defines it if no module does
  CHECK(declared(".visible .entry k() {" + big + "ret;}") == 1 << 30);
  CHECK(declared(".func f() {{" + big + "} ret;}") == 1 << 30);
  CHECK(declared(".visible .entry k() { .loc 1 2 3 " + big + "}") == 1 << 30);
  CHECK(declared(".visible .entry k() { .loc 1 2 3, function_name L + 4, inlined_at 1 2 3 " + big +
                 "}") == 1 << 30);
  CHECK(declared(".visible .entry k() { .pragma \"x\"; L:" + big + "}") == 1 << 30);
  CHECK(declared(".visible .entry k() { mov.u32 a, b; " + big + "}") == 1 << 30);
  CHECK(declared(".section .debug_str { L: .b8 1 }" + big) == 1 << 30);
  CHECK(declared(".pragma \"x\"; .alias a, b; .entry k() .maxntid 1, 2, 3 .noreturn { }" + big) ==
        1 << 30);
  CHECK(declared(".global .align 1073741824 .b8 a[1];") >= 1 << 30);
  CHECK(declared(".global .b8 a[99999999999][99999999999][99999999999];") == std::int64_t{1} << 50);
  CHECK(status(".version 8.0\n.target sm_80.address_size 64.global .b8 a[1];" +
               std::string(1, '\0')) == CUDA_ERROR_INVALID_PTX);
  CHECK(memory(".version 8.0\n.target sm_80.global .b8 a[1073741824];" + std::string(1, '\0')) ==
        1 << 30);
}

TEST_CASE("what is ambiguous or unreadable is refused") {
  for (const char* text : {".global .b8 a[99999999999999999999999];",
                           ".global .b8 a[09];",
                           ".global .b8 a[16*4];",
                           ".global .b8 a[N];",
                           ".global .b8 a[-1];",
                           ".global .b8 a<4>[64];",
                           ".global .b8 a[64.0];",
                           ".global .b8 a[6_4];",
                           ".global .b8 a[0x];",
                           ".global .b8 a[64",
                           ".global .b8 a[64]",
                           ".global .b8 a[64] b;",
                           ".global .b9 a;",
                           ".global a;",
                           ".global .b8;",
                           ".global .align 3 .b8 a;",
                           ".global .align .b8 a;",
                           ".const[2] .b8 a[64];",
                           ".global .b8 a[] = \"abc\";",
                           ".global .b8 a = .b8;",
                           ".global .b8 a[2] = {1;",
                           ".global .b8 a = };",
                           "/* no end",
                           ".file 1 \"no end",
                           ".file 1 \"two\nlines\"",
                           ".file 1 \"a\\\" \"",
                           "# 1 \"file\"\n",
                           "@@DWARF .byte 1\n",
                           "`",
                           "\f",
                           "\x80",
                           "{",
                           ")",
                           ".global .attribute(.managed .b8 a;",
                           ".visible .entry k() { ld .global .u64 a, [b]; }",
                           ".loc 1 2",
                           ".file \"a\"",
                           ".visible .entry k() { .loc 1 2 3, function_name L.global .b8 x[64]; }",
                           ".visible .entry k() { .loc 1 2 3.global .b8 x[64]; }"}) {
    CAPTURE(std::string(text));
    CHECK(declared(text) == -1);
  }
}

TEST_CASE("what is neither text, ELF nor fat binary is refused") {
  CHECK(refused(""));
  CHECK(refused(std::string(1, '\0')));
  CHECK(refused("text"));
  CHECK(refused(std::string("text\0", 5)));
  CHECK(refused(".version 8.0"));  // no end
  CHECK(refused(ptx("") + "x"));
  CHECK(refused(ptx("") + ".global .b8 a[1073741824];"));
  CHECK(status(ptx("") + std::string(8, '\0')) == CUDA_SUCCESS);
  CHECK(refused(std::string("!<arch>\n\0", 9)));
  CHECK(refused(std::string("BC\xc0\xde\0", 5)));
  CHECK(refused(std::string("\x01\xee\x55\x1e\0", 5)));

  struct Wrapper {
    std::uint32_t magic, version;
    std::uint64_t data, objects;
  };
  for (const std::uint32_t version : {1u, 2u}) {
    std::string wrapper;
    append(wrapper, Wrapper{wire::kWrapperMagic, version, 0x4141414141414141, 0x4141414141414141});
    CHECK(refused(wrapper));
    CHECK(refused(wrapper + std::string(1, '\0')));
    CHECK(vet({fatbinOf(ptx("")), wrapper})->status() == CUDA_ERROR_INVALID_IMAGE);
    CHECK(refused(fatbinOf(wrapper)));
    CHECK(refused(fatbinOf(wrapper, fatbin::kElf)));
  }
  CHECK(vet({ptx(""), ptx("")})->status() == CUDA_ERROR_INVALID_IMAGE);
  CHECK(vet({})->status() == CUDA_ERROR_INVALID_IMAGE);
}

TEST_CASE("sections of machine code that take memory count") {
  CHECK(memory(elf(1 << 20, 4096)) == 1 << 20);
  CHECK(memory(changed([](Elf& e) { e.sections[0].sh_addralign = 1 << 30; })) ==
        (1 << 20) + (1 << 30) - 1);
  CHECK(memory(changed([](Elf& e) {
          e.symbol = {.st_shndx = SHN_COMMON, .st_value = 4, .st_size = 1 << 30};
        })) == (1 << 20) + (1 << 30) + 3);
  CHECK(memory(changed([](Elf& e) { e.sections[0].sh_type = SHT_LOPROC + 7; })) == 1 << 20);
  CHECK(memory(changed([](Elf& e) { e.sections[0].sh_size = ~std::uint64_t{0}; })) ==
        std::uint64_t{1} << 50);
  // The section of a variable is one, whatever its name.
  CHECK(memory(changed([](Elf& e) { e.sections[1].sh_type = SHT_LOPROC + 7; })) ==
        (1 << 20) + 4096);
  // Overlapping sections are placed one by one.
  CHECK(memory(changed([](Elf& e) {
          for (int i : {0, 1})
            e.sections[i] = {.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_size = 200};
        })) == 400);
  CHECK(refused(changed([](Elf& e) { e.header.e_shentsize = 0; })));
  CHECK(refused(changed([](Elf& e) { e.header.e_shentsize = 32; })));
  CHECK(refused(changed([](Elf& e) { e.header.e_ident[EI_CLASS] = ELFCLASS32; })));
  CHECK(refused(changed([](Elf& e) { e.header.e_ident[EI_DATA] = ELFDATA2MSB; })));
  CHECK(refused(changed([](Elf& e) { e.header.e_machine = EM_X86_64; })));
  CHECK(refused(changed([](Elf& e) { e.header.e_type = ET_DYN; })));
  CHECK(refused(changed([](Elf& e) { e.header.e_shnum = 0; })));
  CHECK(refused(changed([](Elf& e) { e.header.e_shnum = 0xff00; })));
  CHECK(refused(changed([](Elf& e) { e.header.e_shoff = ~std::uint64_t{0} - 8; })));
  CHECK(refused(changed([](Elf& e) { e.header.e_shnum = 200; })));
  CHECK(refused(changed([](Elf& e) { e.header.e_phnum = 1; })));
  CHECK(refused(changed([](Elf& e) { e.header.e_shstrndx = 9; })));
  CHECK(refused(changed([](Elf& e) {
    e.header.e_phnum = 1, e.header.e_phentsize = sizeof(Elf64_Phdr), e.header.e_phoff = 1 << 20;
  })));
  CHECK(refused(changed([](Elf& e) { e.sections[0].sh_type = SHT_PROGBITS; })));
  CHECK(refused(changed([](Elf& e) { e.sections[0].sh_name = 999; })));
  CHECK(refused(changed([](Elf& e) { e.sections[0].sh_addralign = 3; })));
  CHECK(refused(changed([](Elf& e) { e.sections[3].sh_entsize = 1; })));
  CHECK(refused(changed([](Elf& e) { e.sections[3].sh_offset = 1 << 20; })));
  CHECK(refused(changed([](Elf& e) { e.sections[2].sh_size -= 1; })));
  CHECK(refused(changed([](Elf& e) { e.sections[3].sh_link = 0; })));
  CHECK(
      refused(changed([](Elf& e) { e.symbol.st_name = static_cast<Elf64_Word>(e.names.size()); })));
  const auto sharedNames = [](bool twice) {
    return changed([=](Elf& e) {
      e.names += std::string(1000, 'x') + '\0';
      e.sections[2].sh_size = e.names.size();
      if (twice) e.sections[1] = e.sections[3];
    });
  };
  CHECK(!refused(sharedNames(false)));
  CHECK(refused(sharedNames(true)));
  const auto sharedSymbols = [](bool twice) {
    return changed([=](Elf& e) {
      e.sections[3].sh_offset = e.image().size();
      e.sections[3].sh_size = 40 * sizeof e.symbol;
      e.names.resize(e.names.size() + e.sections[3].sh_size);
      if (twice) e.sections[1] = e.sections[3];
    });
  };
  CHECK(!refused(sharedSymbols(false)));
  CHECK(refused(sharedSymbols(true)));
  CHECK(refused(
      changed([](Elf& e) { e.sections[1].sh_size = 1 << 21; })));  // shared memory larger than any
}

TEST_CASE("the largest entry of a fat binary counts") {
  const std::string text = ptx(".global .u32 x[1024];\n");
  CHECK(memory(fatbinOf(text)) == 4096);
  CHECK(memory(fatbinOf(elf(1 << 20, 0), fatbin::kElf)) == 1 << 20);
  fatbin::Entry entry{};
  entry.kind = fatbin::kPtx;
  CHECK(memory(fatbinOf({{entry, text}, {entry, ptx(".global .u32 x[2048];")}})) == 8192);
  CHECK(vet({fatbinOf(text), fatbinOf(text), fatbinOf(text)})->facts().memory == 8192);
  for (const std::uint64_t flags : {fatbin::kLz4, fatbin::kZstd}) {
    CHECK(memory(compressed(text, flags, text.size())) == 4096);
    CHECK(refused(compressed(text, flags, text.size() + 1)));
    CHECK(refused(compressed(text, flags, text.size() - 1)));
    CHECK(refused(compressed(text, flags, ~std::uint64_t{0})));
    CHECK(refused(compressed(text, flags, std::uint64_t{2} << 30)));
    CHECK(refused(compressed(text, flags | 0x1000, text.size())));
  }
  CHECK(refused(compressed(text, fatbin::kLz4 | fatbin::kZstd, text.size())));
  CHECK(refused(compressed(text, 0, text.size())));
  const auto header = [&](auto change) {
    fatbin::Entry damaged = entry;
    change(damaged);
    return fatbinOf({{damaged, text}});
  };
  CHECK(refused(header([](fatbin::Entry& e) { e.optionsOffset = 60; })));
  CHECK(refused(header([](fatbin::Entry& e) { e.optionsOffset = 1 << 30; })));
  CHECK(refused(header([](fatbin::Entry& e) { e.nameOffset = 60, e.nameSize = 5; })));
  CHECK(refused(header([](fatbin::Entry& e) { e.nameOffset = 1, e.nameSize = ~0u; })));
  CHECK(refused(header([](fatbin::Entry& e) { e.headerSize = 63; })));
  CHECK(refused(header([](fatbin::Entry& e) { e.headerSize = 1 << 30; })));

  // The driver sees what can be sized, and nothing else: a fat binary, or a linked program in a
  // wrapper of our own.
  const auto seen = [](const worker::VettedImage& image, unsigned& version) {
    struct {
      std::uint32_t magic, version;
      const char* data;
      const char* const* objects;
    } wrapper;
    std::memcpy(&wrapper, image.pointer(), sizeof wrapper);
    version = wrapper.magic == wire::kWrapperMagic ? wrapper.version : 0;
    if (version == 0) wrapper.data = static_cast<const char*>(image.pointer());
    fatbin::Header made;
    std::memcpy(&made, wrapper.data, sizeof made);
    CHECK(made.magic == wire::kFatbinMagic);
    CHECK(made.headerSize == sizeof made);
    if (version == 2) {
      REQUIRE(wrapper.objects != nullptr);
      CHECK(wrapper.objects[0] != nullptr);
      CHECK(wrapper.objects[1] == nullptr);
    }
    return std::string(wrapper.data, sizeof made + made.size);
  };
  unsigned version = 0;
  CHECK(seen(*vet({fatbinOf(text)}), version) == fatbinOf(text));
  CHECK(version == 0);
  CHECK(seen(*vet({fatbinOf(text), fatbinOf(text)}), version) == fatbinOf(text));
  CHECK(version == 2);
  fatbin::Entry unknown = entry;
  unknown.kind = 8;
  CHECK(seen(*vet({fatbinOf({{unknown, "?"}, {entry, text}, {entry, ptx(".global .b8 a[N];")}})}),
             version) == fatbinOf(text));
  CHECK(refused(fatbinOf(ptx(".global .b8 a[N];"))));
}

TEST_CASE("the driver gets machine code with zeros behind it, in place where they are known") {
  const std::string image = elf(1, 1);
  const std::string sent = image + std::string(wire::kImageZeros, '\0');
  const std::span<const std::byte> part = std::as_bytes(std::span(sent)).first(image.size());
  using worker::VettedImage;
  const VettedImage inPlace({&part, 1}, VettedImage::Behind::zeros);
  CHECK(inPlace.pointer() == part.data());
  CHECK(inPlace.content().size() == image.size());
  const VettedImage copied({&part, 1});
  REQUIRE(copied.status() == CUDA_SUCCESS);
  CHECK(copied.pointer() != part.data());
  CHECK(std::memcmp(copied.pointer(), sent.data(), sent.size()) == 0);
}

// Sanitizers notice a read outside.
TEST_CASE("sections of machine code do not hold the same fat binary many times") {
  const std::string fatbin = fatbinOf(ptx("// " + std::string(4000, 'x') + "\n"));
  const auto image = [&](unsigned times) {
    Elf elf;
    elf.names = std::string("\0.nv_fatbin\0\0\0\0\0", 16);
    elf.sections[2].sh_size = elf.names.size();
    const std::uint64_t offset = elf.image().size();
    for (unsigned i = 0; i < times; ++i)
      elf.sections[i] = {
          .sh_name = 1, .sh_type = SHT_PROGBITS, .sh_offset = offset, .sh_size = fatbin.size()};
    for (unsigned i : {0u, 1u, 3u}) {
      if (i >= times) elf.sections[i] = {};
    }
    return elf.image() + fatbin;
  };
  CHECK(vet({image(1)})->sentence() == "");
  CHECK(refused(image(2)));
}

TEST_CASE("the memory of many parts is no more than the most of one") {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 50;
  const std::string most = fatbinOf(ptx(".global .b8 a[" + std::to_string(kMost) + "];\n"));
  CHECK(vet({most})->facts().memory == kMost);
  CHECK(vet({most, most, most})->facts().memory == kMost);
  Elf elf;
  elf.names = std::string("\0.nv.global\0.nv_fatbin\0\0", 25);
  elf.sections[2].sh_size = elf.names.size();
  elf.sections[1] = {.sh_name = 12,
                     .sh_type = SHT_PROGBITS,
                     .sh_offset = elf.image().size(),
                     .sh_size = most.size()};
  elf.sections[3] = {};
  CHECK(vet({elf.image() + most})->facts().memory == kMost);
}

TEST_CASE("a damaged image is refused, and nothing outside of it is read") {
  std::minstd_rand random(1);
  for (const std::string& whole :
       {elf(100, 1), fatbinOf(ptx(".global .u32 x[10];\n")), fatbinOf(elf(100, 1), fatbin::kElf),
        compressed(ptx(".global .u32 x;"), fatbin::kZstd, 57)}) {
    for (std::size_t cut = 0; cut < whole.size(); ++cut) CHECK(refused(whole.substr(0, cut)));
    for (int i = 0; i < 20000; ++i) {
      std::string damaged = whole;
      for (unsigned n = 0; n <= random() % 3; ++n)
        damaged[random() % damaged.size()] = static_cast<char>(random());
      const auto vetted = vet({damaged});
      CHECK((vetted->status() == CUDA_SUCCESS) == (vetted->pointer() != nullptr));
    }
  }
}

TEST_CASE("calls of printf and malloc are found by name") {
  CHECK(!mayPrint(ptx("")));
  CHECK(!mayPrint(elf(1, 1)));
  CHECK(!mayPrint(fatbinOf(ptx(".global .u32 x;"))));
  CHECK(mayPrint(ptx(".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n")));
  CHECK(mayPrint(fatbinOf(ptx("call (r), vprintf, (f, a);\n"))));
  CHECK(!mayAllocate(ptx("call (r), vprintf, (f, a);\n")));
  CHECK(!mayAllocate(ptx(".func mallocator()")));
  CHECK(mayAllocate(ptx("call (r), malloc, (s);\n")));
  CHECK(mayAllocate(fatbinOf(ptx("call.uni (r),\nmalloc,\n(s);\n"))));
  const auto named = [](const char* symbol) {
    return changed([=](Elf& elf) {
      elf.names += symbol + std::string(1, '\0');
      elf.sections[2].sh_size = elf.names.size();
    });
  };
  CHECK(mayPrint(named("vprintf")));
  CHECK(!mayPrint(named("vprintfs")));
  CHECK(mayAllocate(named("malloc")));
  CHECK(mayAllocate(named("__nv_aligned_device_malloc")));
  CHECK(mayAllocate(ptx("call (r), __nv_aligned_device_malloc, (s, a);\n")));
}

}  // namespace
