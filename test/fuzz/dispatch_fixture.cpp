#include "test/fuzz/dispatch_fixture.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <string_view>

#include "worker_bodies.h"

namespace fuzz {

namespace {

constexpr std::uint64_t kWindow = 0x7000'0000'0000;
constexpr std::uint64_t kProgram = 0x5300'0000'0000;  ///< where registered memory may lie
constexpr std::uint64_t kFileBytes = 1 << 16;
constexpr std::uint64_t kSealed = 1, kSealedToGrow = 2;  ///< ids of files
constexpr std::string_view kText =
    ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry f() { ret; }\n";

CUresult agree() { return CUDA_SUCCESS; }
CUresult notFound() { return CUDA_ERROR_NOT_FOUND; }
CUresult noParameter() { return CUDA_ERROR_INVALID_VALUE; }  // the first error ends the parameters

template <class Function>
void set(Function& slot, CUresult (*function)()) {
  slot = reinterpret_cast<Function>(function);
}

/// Every entry of the table is a function pointer. These functions ignore all arguments.
void fill(worker::Driver& driver) {
  static_assert(sizeof driver % sizeof(void*) == 0);
  auto* slots = reinterpret_cast<CUresult (**)()>(&driver);
  for (std::size_t i = 0; i < sizeof driver / sizeof(void*); ++i) slots[i] = agree;
  set(driver.cuKernelGetName, notFound);  // would have to return a name
  set(driver.cuFuncGetName, notFound);
  set(driver.cuKernelGetParamInfo, noParameter);
  set(driver.cuFuncGetParamInfo, noParameter);
  // Without extents of the device, no array would be small enough to be made.
  driver.cuDeviceGetAttribute = [](int* value, CUdevice_attribute, CUdevice) {
    return *value = 1 << 17, CUDA_SUCCESS;
  };
  // What the worker reads: the code of a link, and a managed variable.
  static std::array<char, 1000> bytes{};
  driver.cuLinkComplete = [](CUlinkState, void** code, std::size_t* size) {
    return *code = bytes.data(), *size = bytes.size(), CUDA_SUCCESS;
  };
  driver.cuLibraryGetManaged = [](CUdeviceptr* at, std::size_t* size, CUlibrary, const char*) {
    *at = reinterpret_cast<CUdeviceptr>(bytes.data());
    return *size = bytes.size(), CUDA_SUCCESS;
  };
}

/// A memory file with a text of PTX at its begin.
int textFile(int seals) {
  const int file = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0 || ftruncate(file, kFileBytes) != 0) std::abort();
  if (pwrite(file, kText.data(), kText.size(), 0) != static_cast<ssize_t>(kText.size()))
    std::abort();
  if (seals != 0 && fcntl(file, F_ADD_SEALS, seals) != 0) std::abort();
  return file;
}

/// The files that the client sends again and again: sealed, writable, read-only.
const std::array<int, 3>& files() {
  static const std::array<int, 3> all = [] {
    const int writable = textFile(F_SEAL_SHRINK);
    const std::string path = "/proc/self/fd/" + std::to_string(writable);
    return std::array{textFile(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), writable,
                      open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  }();
  return all;
}

/// The directory that the workers of an allocation share, as gpu-proxy makes it.
std::string sharingDirectory() {
  char path[] = "/tmp/dispatch-fuzz-XXXXXX";
  if (mkdtemp(path) == nullptr) std::abort();
  const int file = open((std::string(path) + "/exports").c_str(), O_CREAT | O_RDWR, 0600);
  const std::uint32_t header[2] = {0x4e565831, 1};
  if (ftruncate(file, 256 + 4096 * 384) != 0 || write(file, header, sizeof header) < 0)
    std::abort();
  close(file);
  return path;
}

}  // namespace

Fixture::Fixture() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::abort();
  static const std::string directory = sharingDirectory();
  if (!worker::Sharing::open(directory, 0, quota_.exports).empty()) std::abort();
  session_ = std::make_unique<worker::Session>(ends[0], report_, quota_, figures_.figures(),
                                               output_, worker::Limits{});
  fill(session_->driver);
  session_->memory.install(session_->driver, false);
  session_->shared.window = {kWindow, kWindow + (std::uint64_t{1} << 40)};
  session_->shared.close();  // only the files of sendFiles() ever arrive
  thread_ = std::make_unique<worker::Thread>(*session_, nullptr);
  handles_.resize(static_cast<std::size_t>(wire::HandleKind::count));
  restore();
  exportEvent();
}

std::uint64_t Fixture::makeHandle(wire::HandleKind kind) {
  // The worker's own object stands behind the handle of a link.
  if (kind == wire::HandleKind::linkState) {
    dispatch(static_cast<std::uint16_t>(CallNumber::cuLinkCreate_v2), Words(1));
    wire::Decoder in(reply_.data(), reply_.size());
    return in.get<std::uint64_t>();
  }
  return session_->handles.add(kind, reinterpret_cast<void*>(0x1000 + static_cast<int>(kind)));
}

void Fixture::restore() {
  known_ = {1, 2, 3, kWindow, kWindow + 4096, kProgram, kProgram + 4096, 4096, 8192, kFileBytes};
  known_.push_back(wire::primaryContextHandle(0));
  for (std::size_t kind = 1; kind < handles_.size(); ++kind) {
    const auto one = static_cast<wire::HandleKind>(kind);
    if (session_->handles.find(one, handles_[kind]) == nullptr) handles_[kind] = makeHandle(one);
    known_.push_back(handles_[kind]);
  }
}

void Fixture::exportEvent() {
  const auto name = session_->sharing.share(worker::ExportTable::Kind::event, 0x1000, nullptr, 0,
                                            worker::SharedName{});
  if (name) exported_ = *name;
}

/// A file that is there already is closed again.
void Fixture::sendFiles() {
  for (std::size_t i = 0; i < files().size(); ++i)
    session_->shared.put(i + 1, fcntl(files()[i], F_DUPFD_CLOEXEC, 0));
}

std::pair<std::uint16_t, const Words*>& Fixture::current() {
  static std::pair<std::uint16_t, const Words*> frame;
  return frame;
}

Outcome Fixture::dispatch(std::uint16_t call, const Words& words) {
  sendFiles();
  wire::FrameHeader header{};
  header.call = call;
  current() = {call, &words};
  // Of exactly this size, so that the sanitizer sees reads beyond its end.
  const std::unique_ptr<std::uint64_t[]> frame(new std::uint64_t[words.size()]);
  std::copy(words.begin(), words.end(), frame.get());
  wire::Decoder in(reinterpret_cast<const std::byte*>(frame.get()), words.size() * 8);
  wire::Encoder out(reply_.data(), reply_.size());
  const CUresult status = worker::dispatch(*thread_, header, in, out);
  return {in.finished(), status, words.size() - in.remaining() / 8};
}

bool complete(Fixture& fixture, std::uint16_t call, Words& words, Random& random) {
  constexpr int kTries = 96;
  constexpr std::size_t kPadding = 512;
  for (int i = 0; i < kTries; ++i) {
    // Counts of bytes: those of arrays of words first, then those of larger elements.
    const std::uint64_t filling = i < 2 ? 8 * i : 8 * (random() % 80);
    Words tried = words;
    tried.insert(tried.end(), kPadding, filling);
    // A frame with more than its call reads is refused, so nothing is executed here. After a word
    // that does not parse, nothing is left.
    const Outcome outcome = fixture.dispatch(call, tried);
    if (outcome.consumed == tried.size()) continue;
    tried.resize(outcome.consumed);
    return words = std::move(tried), true;
  }
  return false;
}

Words example(const Fixture& fixture, std::uint16_t call) {
  const auto link = fixture.handle(wire::HandleKind::linkState);
  const auto library = fixture.handle(wire::HandleKind::library);
  constexpr std::uint64_t kName = 'f';  // with its NUL
  switch (static_cast<CallNumber>(call)) {
    case CallNumber::cuMemHostAlloc: return {kSealedToGrow, kWindow, kFileBytes, 0};
    case CallNumber::cuMemFreeHost: return {kWindow};
    case CallNumber::cuMemHostRegister_v2:
      return {kProgram, 4096, 0, 32, kSealedToGrow, kProgram, 4096, 0};
    case CallNumber::cuMemHostUnregister: return {kProgram};
    case CallNumber::cuLinkAddData_v2:
      return {link, CU_JIT_INPUT_PTX, kSealed, kText.size() + 1, 2, kName, 0};
    case CallNumber::cuLinkComplete: return {link};
    case CallNumber::readLinkedCode: return {link, 0};
    case CallNumber::cuModuleLoadDataEx:
    case CallNumber::cuLibraryLoadData: return {kSealed, 1, kText.size() + 1, 0, 0, 0};
    case CallNumber::cuLibraryGetManaged: return {library, 0, 2, kName};
    case CallNumber::cuIpcOpenEventHandle: {
      const auto name = std::bit_cast<std::array<std::uint64_t, 8>>(fixture.exported());
      return {name.begin(), name.end()};
    }
    default: return {};
  }
}

void insertKnown(const Fixture& fixture, Words& words, Random& random) {
  if (words.empty()) return;
  for (auto times = 1 + random() % 6; times > 0; --times) {
    std::uint64_t& word = words[random() % words.size()];
    const std::uint64_t known = fixture.known()[random() % fixture.known().size()];
    switch (random() % 8) {
      case 0: word = random() % 20; break;
      case 1: word = (word & ~std::uint64_t{0xffffffff}) | random() % 20; break;
      case 2: word = (word & 0xffffffff) | std::uint64_t{random() % 20} << 32; break;
      case 3: word = ~std::uint64_t{0} << random() % 64; break;
      default: word = known;
    }
  }
  const auto name = std::bit_cast<std::array<std::uint64_t, 8>>(fixture.exported());
  if (words.size() < name.size() || random() % 16 != 0) return;
  const auto last = static_cast<std::ptrdiff_t>(words.size() - name.size());
  std::copy(name.begin(), name.end(), words.begin() + (last > 0 ? random() % (last + 1) : 0));
}

}  // namespace fuzz
