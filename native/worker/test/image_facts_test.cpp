// What is told of an image: variables of PTX as they are declared, sections of machine code, the largest of a fat binary's entries.
#include "native/worker/image_facts.h"

#include <elf.h>

#include <cstring>
#include <string>

#include "native/fatbin/fatbin.h"
#include "wire/image.h"
#include "wire/test/check.h"

namespace {

bool mayPrint(const std::string& image) { return worker::inspectImage(std::as_bytes(std::span(image))).mayPrint; }

bool mayAllocate(const std::string& image) { return worker::inspectImage(std::as_bytes(std::span(image))).mayAllocate; }

std::uint64_t memory(const std::string& image) { return worker::inspectImage(std::as_bytes(std::span(image))).memory; }

std::string ptx(const std::string& declarations) { return "\n.version 9.0\n.target sm_80\n.address_size 64\n" + declarations; }

template <class T>
void append(std::string& image, const T& value) {
  image.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string fatbinOf(const std::string& text) {
  fatbin::Entry entry{};
  entry.kind = fatbin::kPtx;
  entry.headerSize = sizeof entry;
  entry.payloadSize = text.size();
  const fatbin::Header header{wire::kFatbinMagic, 1, sizeof(fatbin::Header), sizeof entry + text.size()};
  std::string image;
  append(image, header);
  append(image, entry);
  return image + text;
}

std::string elf(std::uint64_t globalBytes, std::uint64_t sharedBytes) {
  const std::string names("\0.nv.global\0.nv.shared.k\0", 25);
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_shoff = sizeof header;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 3;
  Elf64_Shdr sections[3]{};
  sections[0] = {.sh_name = 1, .sh_type = SHT_NOBITS, .sh_size = globalBytes};  // no flag: the name is what the loader goes by
  sections[1] = {.sh_name = 12, .sh_type = SHT_NOBITS, .sh_flags = SHF_ALLOC, .sh_size = sharedBytes};
  sections[2] = {.sh_type = SHT_STRTAB, .sh_offset = sizeof header + sizeof sections, .sh_size = names.size()};
  header.e_shstrndx = 2;
  std::string image;
  append(image, header);
  append(image, sections);
  return image + names;
}

}  // namespace

int main() {
  CHECK(memory(ptx("")) == 0);
  CHECK(memory(ptx(".visible .global .align 4 .b8 big[1073741824];\n")) == 1073741824);
  CHECK(memory(ptx(".global .align 8 .f64 one;\n.const .align 4 .b32 table[3][5] = {1, 2};\n")) == 8 + 60);
  CHECK(memory(ptx(".extern .global .align 4 .b8 elsewhere[100];\n// .global .b8 comment[7];\n/* .global .b8 no[9]; */\n")) == 0);
  CHECK(memory(ptx(".visible .entry k(.param .u64 .ptr .global .align 8 k_param_0)\n{\n ld.global.f32 %f1, [%rd1];\n ret;\n}\n")) == 0);
  CHECK(memory(ptx(".global .b8 a[99999999999999999999999];\n.global .b8 b[1];\n")) >= std::uint64_t{1} << 50);
  CHECK(memory(elf(1 << 20, 4096)) == 1 << 20);
  CHECK(memory(fatbinOf(ptx(".global .u32 x[10];\n"))) == 40);
  for (const std::string& whole : {elf(100, 1), fatbinOf(ptx(".global .u32 x[10];\n"))}) {
    for (std::size_t cut = 0; cut < whole.size(); ++cut) memory(whole.substr(0, cut));  // must not read beyond the end
  }
  CHECK(!mayPrint(ptx("")) && !mayPrint(elf(1, 1)) && !mayPrint(fatbinOf(ptx(".global .u32 x;"))));
  CHECK(mayPrint(ptx(".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n")));
  CHECK(mayPrint(fatbinOf(ptx("call (r), vprintf, (f, a);\n"))));
  const std::string whole = fatbinOf(ptx(".global .u32 x;"));
  CHECK(mayPrint(whole.substr(0, whole.size() - 1)) && mayAllocate(whole.substr(0, whole.size() - 1)));  // who knows
  CHECK(!mayAllocate(ptx("call (r), vprintf, (f, a);\n")) && !mayAllocate(ptx(".func mallocator()")));
  CHECK(mayAllocate(ptx("call (r), malloc, (s);\n")) && mayAllocate(fatbinOf(ptx("call.uni (r),\nmalloc,\n(s);\n"))));
  CHECK(mayAllocate(elf(1, 1) + std::string("\0malloc\0", 8)) && mayAllocate(ptx("call (r), __nv_aligned_device_malloc, (s, a);\n")));
  return wire::test::checkedResult();
}
