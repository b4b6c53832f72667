#include "native/worker/images/vetted_image.h"

#include <elf.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <string_view>

#include "native/fatbin/container.h"
#include "native/fatbin/fatbin.h"
#include "native/worker/images/cubin_memory.h"
#include "native/worker/images/memory_sum.h"
#include "native/worker/images/ptx_memory.h"
#include "wire/image.h"

namespace worker {

namespace {

/// Maximum bytes of all decompressed entries of an image: a few KiB of compressed zeros must not
/// keep the worker busy.
constexpr std::uint64_t kMostUnpacked = std::uint64_t{4} << 30;
constexpr std::uint64_t kMostOfEntry = std::uint64_t{1} << 30;

struct Refusal {
  CUresult status;
  std::string sentence;
};

[[noreturn]] void refuse(const char* why) {
  throw Refusal{CUDA_ERROR_INVALID_IMAGE, std::string("a code image is refused: ") + why};
}

void append(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

bool beginsWith(std::span<const std::byte> part, std::uint32_t magic) {
  return part.size() >= sizeof magic && std::memcmp(part.data(), &magic, sizeof magic) == 0;
}

bool isElf(std::span<const std::byte> part) {
  return part.size() >= SELFMAG && std::memcmp(part.data(), ELFMAG, SELFMAG) == 0;
}

/// Whether a name in the content ends with `name`: code uses it plainly, or as a suffix
/// (`__nv_aligned_device_malloc`).
bool names(std::string_view content, std::string_view name) {
  for (std::size_t at = content.find(name); at != content.npos; at = content.find(name, at + 1)) {
    const char next = at + name.size() < content.size() ? content[at + name.size()] : '\0';
    if (!std::isalnum(static_cast<unsigned char>(next)) && next != '_') return true;
  }
  return false;
}

ImageFacts factsOf(std::string_view content, std::uint64_t memory) {
  return {memory, names(content, "vprintf"), names(content, "malloc")};
}

void takeMost(ImageFacts& most, const ImageFacts& facts) {
  most.memory = std::max(most.memory, facts.memory);
  most.mayPrint = most.mayPrint || facts.mayPrint;
  most.mayAllocate = most.mayAllocate || facts.mayAllocate;
}

ImageFacts factsOf(const CubinMemory& cubin) {
  ImageFacts facts{.memory = cubin.bytes};
  for (const std::string_view symbols : cubin.names) takeMost(facts, factsOf(symbols, cubin.bytes));
  return facts;
}

/// PTX up to its terminator. Only zeros may follow, or the driver might read on.
std::string_view textOf(std::string_view content) {
  const std::size_t end = std::min(content.find('\0'), content.size());
  if (content.find_first_not_of('\0', end) != content.npos)
    refuse("something follows the end of its PTX");
  return content.substr(0, end);
}

bool isPtx(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  for (std::size_t at = 0;;) {
    at = text.find_first_not_of(kBlank, at);
    if (at == text.npos) return false;
    const std::string_view rest = text.substr(at);
    if (rest.starts_with("//"))
      at = text.find('\n', at);
    else if (rest.starts_with("/*"))
      at = text.find("*/", at + 2) == text.npos ? text.npos : text.find("*/", at + 2) + 2;
    else
      return rest.starts_with(".version");
    if (at == text.npos) return false;
  }
}

/// Adds the facts of an entry. Returns the reason if the driver must not see the entry, else an
/// empty string.
std::string inspectEntry(const fatbin::Entry& entry, std::string_view content, ImageFacts& facts) {
  if (entry.kind == fatbin::kPtx) {
    const std::string_view text = textOf(content);
    const PtxMemory memory = ptxMemory(text);
    takeMost(facts, factsOf(text, memory.bytes));
    return memory.refusal;
  }
  const CubinMemory memory = cubinMemory(std::as_bytes(std::span(content)));
  if (memory.refusal == nullptr) takeMost(facts, factsOf(memory));
  return memory.refusal == nullptr ? std::string() : memory.refusal;
}

}  // namespace

VettedImage::VettedImage(std::span<const std::span<const std::byte>> parts, Behind behind)
    : behind_(behind) {
  try {
    vet(parts);
  } catch (const Refusal& refusal) {
    pointer_ = nullptr;
    status_ = refusal.status;
    sentence_ = refusal.sentence;
  }
}

void VettedImage::vet(std::span<const std::span<const std::byte>> parts) {
  if (parts.empty()) refuse("it is empty");
  const auto first = parts.front();
  if (beginsWith(first, wire::kFatbinMagic)) return addLinked(parts);
  if (parts.size() > 1) refuse("only a fat binary consists of several parts");
  if (isElf(first))
    addCubin(first);
  else
    addText(first);
  pointer_ = content_.data();
}

void VettedImage::addLinked(std::span<const std::span<const std::byte>> parts) {
  facts_ = addFatbin(parts.front());
  ImageFacts linked;
  for (const auto part : parts.subspan(1)) {
    if (!beginsWith(part, wire::kFatbinMagic)) refuse("one of its parts is not a fat binary");
    ImageFacts facts = addFatbin(part);
    facts.memory = addMemory(facts.memory, linked.memory);
    takeMost(linked, facts);
  }
  takeMost(facts_, linked);
  wrap();
}

void VettedImage::addText(std::span<const std::byte> part) {
  const std::string_view content(reinterpret_cast<const char*>(part.data()), part.size());
  if (part.empty() || content.find('\0') == content.npos)
    refuse("it is neither a fat binary, nor machine code, nor text that ends");
  const std::string_view text = textOf(content);
  if (!isPtx(text)) refuse("it is neither PTX, nor a fat binary, nor machine code for a GPU");
  const PtxMemory memory = ptxMemory(text);
  if (!memory.refusal.empty()) throw Refusal{CUDA_ERROR_INVALID_PTX, memory.refusal};
  facts_ = factsOf(text, memory.bytes);
  const auto copy = addCopy(part.first(text.size()));
  content_ = {copy.data(), copy.size() + 1};
}

/// Returns the copy, without the zeros behind it.
std::span<const std::byte> VettedImage::addCopy(std::span<const std::byte> part) {
  Bytes& copy = copies_.emplace_back();
  copy.reserve(part.size() + wire::kImageZeros);
  append(copy, part);
  copy.resize(copy.size() + wire::kImageZeros);
  return {copy.data(), part.size()};
}

void VettedImage::addCubin(std::span<const std::byte> part) {
  const CubinMemory memory = cubinMemory(part);
  if (memory.refusal != nullptr) refuse(memory.refusal);
  facts_ = factsOf(memory);
  content_ = behind_ == Behind::zeros ? part : addCopy(part);
  addContained(part);
}

/// The simulated driver links to machine code that holds fat binaries. All of them are loaded.
void VettedImage::addContained(std::span<const std::byte> part) {
  const auto add = [&](std::span<const std::byte> fatbin) {
    ImageFacts facts = addFatbin(fatbin);
    facts.memory = addMemory(facts.memory, facts_.memory);
    takeMost(facts_, facts);
  };
  if (!fatbin::eachFatbin(part, add)) refuse("a fat binary in the machine code is damaged");
  if (!sentence_.empty()) throw Refusal{CUDA_ERROR_INVALID_IMAGE, sentence_};
}

/// Copies the accepted entries into a new fat binary.
ImageFacts VettedImage::addFatbin(std::span<const std::byte> part) {
  ImageFacts facts;
  fatbin::Header header{wire::kFatbinMagic, 1, sizeof(fatbin::Header), 0};
  Bytes& copy = copies_.emplace_back();
  copy.reserve(part.size() + wire::kImageZeros);
  copy.resize(sizeof header);
  const auto visit = [&](const fatbin::Entry&, std::span<const std::byte> entry,
                         std::span<const std::byte> payload) {
    addEntry(entry, payload, copy, facts);
  };
  if (!fatbin::eachEntry(part, visit)) refuse("a length in the fat binary exceeds its size");
  header.size = copy.size() - sizeof header;
  std::memcpy(copy.data(), &header, sizeof header);
  copy.resize(copy.size() + wire::kImageZeros);
  objects_.push_back(copy.data());
  return facts;
}

/// Skips entries of unknown kinds, such as intermediate code for the linker, and entries of unknown
/// size. The driver may find another usable entry.
void VettedImage::addEntry(std::span<const std::byte> header, std::span<const std::byte> payload,
                           Bytes& copy, ImageFacts& facts) {
  fatbin::Entry entry;
  std::memcpy(&entry, header.data(), sizeof entry);
  if (entry.kind != fatbin::kPtx && entry.kind != fatbin::kElf) return;
  if (!fatbin::wellFormed(entry, header)) refuse("an entry of the fat binary has a damaged header");
  const auto content =
      fatbin::contentOf(entry, payload, std::min(kMostOfEntry, kMostUnpacked - unpacked_));
  if (!content)
    refuse("an entry of the fat binary does not decompress to its declared size, or is too large");
  unpacked_ += content->size();
  if (const std::string sentence = inspectEntry(entry, *content, facts); !sentence.empty()) {
    sentence_ = "an entry of a fat binary is skipped: " + sentence;
    return;
  }
  append(copy, header);
  append(copy, payload);
}

void VettedImage::wrap() {
  const bool empty = copies_.front().size() == sizeof(fatbin::Header) + wire::kImageZeros;
  if (empty && !sentence_.empty()) throw Refusal{CUDA_ERROR_INVALID_IMAGE, sentence_};
  content_ = {copies_.front().data(), copies_.front().size() - wire::kImageZeros};
  pointer_ = objects_.front();
  if (objects_.size() == 1) return;
  objects_.push_back(nullptr);
  wrapper_ = {wire::kWrapperMagic, 2, objects_.front(), objects_.data() + 1};
  pointer_ = &wrapper_;
}

}  // namespace worker
