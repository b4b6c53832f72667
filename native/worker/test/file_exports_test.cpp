// Exports by file descriptor, with a hostile client: through frames, and without a session.
#include "native/worker/session/file_exports.h"

#include <dlfcn.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>

#include "native/worker/test/session_fixture.h"
#include "native/worker/test/sharing_fixture.h"
#include "test/unit/program.h"

namespace {

using worker::ExportTable;
using worker::FileExports;
using worker::OwnedFile;
using worker::SharedName;
using worker::test::Allocation;
using worker::test::kMiB;
using worker::test::Reply;
using Kind = ExportTable::Kind;

constexpr std::uint64_t kLimit = 64 * kMiB;
constexpr FileExports::Object kObject{Kind::physical, 7};

/// Both ends of what a client makes for an export.
struct Ends {
  Ends() {
    int made[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, made) == 0);
    program = OwnedFile(made[0]);
    worker = OwnedFile(made[1]);
  }
  OwnedFile program, worker;
};

OwnedFile copyOf(const OwnedFile& file) { return OwnedFile(dup(file.get())); }
void closeFile(OwnedFile& file) { file = OwnedFile(); }

OwnedFile someFile() { return OwnedFile(worker::test::memoryFile("content", 4096, F_SEAL_SHRINK)); }

/// A worker of the allocation without a session.
struct Exporter : worker::test::SharingWorker {
  Exporter(const Allocation& allocation, unsigned slot) : SharingWorker(allocation, slot) {}

  /// Never destroyed, because a thread answers for it.
  FileExports& exports = *new FileExports(sharing, table);
  int ended = 0;

  std::optional<SharedName> add(OwnedFile watched, FileExports::Object object = kObject) {
    return exports.add(object, kMiB, someFile(), std::move(watched), [this] { ++ended; });
  }
  int fetch(Kind kind, const SharedName& name) {
    const auto found = sharing.find(kind, name);
    if (!found) return -2;
    const OwnedFile file(sharing.fetchFile(*found, FileExports::keyOf(*found)));
    sharing.release(*found);
    return file.get();
  }
  bool hasWork() const {
    pollfd readable{exports.hangUps(), POLLIN, 0};
    return poll(&readable, 1, 0) == 1;
  }
};

/// A session with the simulated driver; the test is its client.
struct Client {
  const Allocation allocation;
  const std::string file = worker::test::makeQuotaFile(kLimit);
  worker::Report report{-1};
  worker::Quota quota;
  worker::Figures figures{};
  worker::Output output;
  worker::Session* session = nullptr;  ///< never destroyed: threads of the driver use it
  std::unique_ptr<worker::test::Frames> frames;
  std::uint64_t files = 0;

  Client() {
    REQUIRE(quota.open(file, 0, kLimit) == "");
    unlink(file.c_str());
    REQUIRE(worker::Sharing::open(allocation.directory(), 0, quota.exports) == "");
    session = new worker::Session(-1, report, quota, figures, output, {});
    REQUIRE(worker::load(dlopen(unit::argument(0, "a driver"), RTLD_NOW | RTLD_LOCAL),
                         session->driver));
    CUcontext context = nullptr;
    REQUIRE(session->driver.cuInit(0) == CUDA_SUCCESS);
    REQUIRE(session->driver.cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
    REQUIRE(session->driver.cuCtxSetCurrent(context) == CUDA_SUCCESS);
    frames = std::make_unique<worker::test::Frames>(*session);
  }

  template <class... T>
  Reply call(CallNumber number, T... arguments) {
    return frames->call(number, arguments...);
  }
  std::uint64_t create(CUmemAllocationHandleType type = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    CUmemAllocationProp properties = worker::test::deviceMemory();
    properties.requestedHandleTypes = type;
    const Reply made = call(CallNumber::cuMemCreate, std::size_t{4 * kMiB}, properties, 0ull);
    REQUIRE(made.status == CUDA_SUCCESS);
    return made.handle;
  }
  Reply exportMemory(std::uint64_t handle, OwnedFile watched) {
    session->shared.put(++files, watched.release());
    return call(CallNumber::cuMemExportToShareableHandle, handle, files);
  }
  Reply importMemory(const SharedName& name) {
    return call(CallNumber::cuMemImportFromShareableHandle, name);
  }
  CUresult release(std::uint64_t handle) { return call(CallNumber::cuMemRelease, handle).status; }
  std::uint64_t used() {
    session->fileExports.settle();
    return quota.used();
  }
};

SharedName nameIn(const Reply& reply) {
  const std::array<std::uint64_t, 8> words{reply.handle, reply.second};
  return std::bit_cast<SharedName>(words);
}

TEST_CASE("an export lasts until the program's descriptor is closed everywhere") {
  const Allocation allocation;
  Exporter owner(allocation, 0), user(allocation, 1);
  Ends ends, second;
  const auto name = owner.add(std::move(ends.worker));
  REQUIRE(name);
  CHECK(owner.add(std::move(second.worker)) == name);
  CHECK(user.fetch(Kind::physical, *name) >= 0);
  CHECK(user.fetch(Kind::pool, *name) == -2);
  OwnedFile copy = copyOf(ends.program);
  closeFile(ends.program);
  closeFile(second.program);
  owner.exports.settle();
  CHECK(owner.ended == 1);
  CHECK(user.fetch(Kind::physical, *name) >= 0);
  closeFile(copy);
  CHECK(owner.hasWork());
  owner.exports.settle();
  CHECK(owner.ended == 2);
  CHECK(user.fetch(Kind::physical, *name) == -1);
  Ends third;
  CHECK(owner.add(std::move(third.worker)) == name);
  CHECK(user.fetch(Kind::physical, *name) >= 0);
  owner.exports.ended(kObject);
  CHECK(user.fetch(Kind::physical, *name) == -2);
  owner.exports.settle();
  CHECK(owner.ended == 2);
}

TEST_CASE("a copy of the worker's end neither keeps an export, nor the worker busy") {
  const Allocation allocation;
  Exporter owner(allocation, 0);
  Ends ends, other;
  const OwnedFile kept = copyOf(ends.worker), keptToo = copyOf(other.worker);
  REQUIRE(owner.add(std::move(ends.worker)));
  closeFile(ends.program);
  CHECK(owner.hasWork());
  owner.exports.settle();
  CHECK(owner.ended == 1);
  CHECK(!owner.hasWork());
  REQUIRE(owner.add(std::move(other.worker)));
  owner.exports.ended(kObject);
  closeFile(other.program);
  CHECK(!owner.hasWork());
}

TEST_CASE("only Unix sockets are watched") {
  const Allocation allocation;
  Exporter owner(allocation, 0);
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  CHECK(!owner.add(OwnedFile(pipe[0])));
  CHECK(!owner.add(OwnedFile(pipe[1])));
  CHECK(!owner.add(someFile()));
  CHECK(!owner.add(OwnedFile(open("/dev/null", O_RDWR))));
  CHECK(!owner.add(OwnedFile()));
  CHECK(!owner.hasWork());
}

TEST_CASE("the number of watched descriptors is limited") {
  rlimit limit{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < 2 * FileExports::kMost) return unit::skip("too few descriptors");
  const Allocation allocation;
  Exporter owner(allocation, 0);
  Ends ends;
  for (std::size_t i = 0; i < FileExports::kMost; ++i) CHECK(owner.add(copyOf(ends.worker)));
  CHECK(!owner.add(copyOf(ends.worker)));
  closeFile(ends.program);
  Ends next;
  CHECK(owner.add(std::move(next.worker)));
  CHECK(owner.ended == FileExports::kMost);
}

TEST_CASE("memory stays charged while a handle, a mapping or a descriptor leads to it") {
  Client client;
  const std::uint64_t before = client.used();
  const std::uint64_t memory = client.create();
  Ends ends;
  const Reply made = client.exportMemory(memory, std::move(ends.worker));
  REQUIRE(made.status == CUDA_SUCCESS);
  CHECK(client.release(memory) == CUDA_SUCCESS);
  CHECK(client.used() == before + 4 * kMiB);
  const Reply imported = client.importMemory(nameIn(made));
  REQUIRE(imported.status == CUDA_SUCCESS);
  closeFile(ends.program);
  CHECK(client.used() == before + 4 * kMiB);
  CHECK(client.importMemory(nameIn(made)).status == CUDA_ERROR_INVALID_VALUE);
  CHECK(client.release(imported.handle) == CUDA_SUCCESS);
  CHECK(client.release(imported.handle) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(client.used() == before);
}

TEST_CASE("memory of another worker is not charged again, and outlives its owner's use") {
  Client client;
  Exporter other(client.allocation, 1);
  const std::uint64_t before = client.used();
  CUmemGenericAllocationHandle memory = 0;
  CUmemAllocationProp properties = worker::test::deviceMemory();
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  const worker::Driver& driver = client.session->driver;
  REQUIRE(driver.cuMemCreate(&memory, 4 * kMiB, &properties, 0) == CUDA_SUCCESS);
  int file = -1;
  REQUIRE(driver.cuMemExportToShareableHandle(
              &file, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) == CUDA_SUCCESS);
  Ends ends, own;
  const auto name =
      other.exports.add(kObject, 4 * kMiB, OwnedFile(file), std::move(ends.worker), {});
  REQUIRE(name);
  const Reply first = client.importMemory(*name), second = client.importMemory(*name);
  REQUIRE(first.status == CUDA_SUCCESS);
  CHECK(second.status == CUDA_SUCCESS);
  CHECK(client.used() == before);
  CHECK(client.exportMemory(first.handle, std::move(own.worker)).status ==
        CUDA_ERROR_NOT_SUPPORTED);
  other.exports.ended(kObject);
  CHECK(client.used() == before + 4 * kMiB);
  CHECK(client.release(first.handle) == CUDA_SUCCESS);
  CHECK(client.used() == before + 4 * kMiB);
  CHECK(client.release(second.handle) == CUDA_SUCCESS);
  CHECK(client.used() == before);
  CHECK(driver.cuMemRelease(memory) == CUDA_SUCCESS);
}

TEST_CASE("what a client invents is neither exported nor imported") {
  Client client;
  const std::uint64_t before = client.used();
  const std::uint64_t memory = client.create(), plain = client.create(CU_MEM_HANDLE_TYPE_NONE);
  Ends ends, second, third;
  CHECK(client.exportMemory(memory, someFile()).status == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(client.exportMemory(plain, std::move(ends.worker)).status == CUDA_ERROR_INVALID_VALUE);
  CHECK(client.exportMemory(memory + 2, std::move(second.worker)).status ==
        CUDA_ERROR_INVALID_HANDLE);
  CHECK(client.importMemory({}).status == CUDA_ERROR_INVALID_VALUE);
  const Reply made = client.exportMemory(memory, std::move(third.worker));
  REQUIRE(made.status == CUDA_SUCCESS);
  SharedName altered = nameIn(made);
  altered[0] ^= std::byte{1};
  CHECK(client.importMemory(altered).status == CUDA_ERROR_INVALID_VALUE);
  altered = nameIn(made);
  altered[63] = std::byte{1};
  CHECK(client.importMemory(altered).status == CUDA_ERROR_INVALID_VALUE);
  CHECK(client.call(CallNumber::cuMemPoolImportFromShareableHandle, nameIn(made)).status ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(client.release(memory) == CUDA_SUCCESS);
  CHECK(client.release(plain) == CUDA_SUCCESS);
  closeFile(third.program);
  CHECK(client.used() == before);
}

TEST_CASE("nothing is allocated from an imported pool, and its pointers are of that pool") {
  Client client;
  Exporter other(client.allocation, 1);
  const worker::Driver& driver = client.session->driver;
  CUmemoryPool pool = nullptr;
  CUmemPoolProps properties = worker::test::devicePool();
  properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  int file = -1;
  REQUIRE(driver.cuMemPoolCreate(&pool, &properties) == CUDA_SUCCESS);
  REQUIRE(driver.cuMemPoolExportToShareableHandle(&file, pool, properties.handleTypes, 0) ==
          CUDA_SUCCESS);
  Ends ends;
  constexpr FileExports::Object kPool{Kind::pool, 9};
  const auto name = other.exports.add(kPool, 0, OwnedFile(file), std::move(ends.worker), {});
  REQUIRE(name);
  const Reply imported = client.call(CallNumber::cuMemPoolImportFromShareableHandle, *name);
  REQUIRE(imported.status == CUDA_SUCCESS);
  CHECK(client.call(CallNumber::cuMemAllocFromPoolAsync, kMiB, imported.handle, std::uint64_t{0})
            .status == CUDA_ERROR_INVALID_VALUE);
  const auto import = [&](const SharedName& pointer) {
    return client.call(CallNumber::cuMemPoolImportPointer, imported.handle, pointer).status;
  };
  const auto group = other.sharing.entryOf(Kind::pool, 9);
  REQUIRE(group);
  const auto pointer =
      other.sharing.share(Kind::poolPointer, 0x1000, nullptr, kMiB, SharedName{}, *group);
  const auto stray =
      other.sharing.share(Kind::poolPointer, 0x2000, nullptr, kMiB, SharedName{}, *group + 1);
  CHECK(import(SharedName{}) == CUDA_ERROR_INVALID_VALUE);
  CHECK(import(*name) == CUDA_ERROR_INVALID_VALUE);
  CHECK(import(*stray) == CUDA_ERROR_INVALID_VALUE);
  CHECK(import(*pointer) == CUDA_ERROR_INVALID_VALUE);  // the driver does not know the content
  other.sharing.ended(Kind::poolPointer, 0x1000);
  other.sharing.ended(Kind::poolPointer, 0x2000);
  CHECK(client.quota.exports.orphaned() == 0);
  const Reply own = client.call(CallNumber::cuMemPoolCreate, properties);
  REQUIRE(own.status == CUDA_SUCCESS);
  CHECK(client.call(CallNumber::cuMemPoolImportPointer, own.handle, *pointer).status ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(client.call(CallNumber::cuMemPoolDestroy, imported.handle).status == CUDA_SUCCESS);
  CHECK(driver.cuMemPoolDestroy(pool) == CUDA_SUCCESS);
}

TEST_CASE("a pool of the process itself, and memory of no shareable pool, are refused") {
  Client client;
  CUmemPoolProps properties = worker::test::devicePool();
  properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  const Reply pool = client.call(CallNumber::cuMemPoolCreate, properties);
  Ends ends;
  client.session->shared.put(1000, ends.worker.release());
  const Reply made =
      client.call(CallNumber::cuMemPoolExportToShareableHandle, pool.handle, std::uint64_t{1000});
  REQUIRE(made.status == CUDA_SUCCESS);
  CHECK(client.call(CallNumber::cuMemPoolImportFromShareableHandle, nameIn(made)).status ==
        CUDA_ERROR_INVALID_VALUE);
  const Reply memory =
      client.call(CallNumber::cuMemAllocFromPoolAsync, kMiB, pool.handle, std::uint64_t{0});
  REQUIRE(memory.status == CUDA_SUCCESS);
  CHECK(client.call(CallNumber::cuMemPoolExportPointer, memory.handle).status == CUDA_SUCCESS);
  CHECK(client.call(CallNumber::cuMemPoolExportPointer, memory.handle + 512).status ==
        CUDA_ERROR_INVALID_VALUE);
  const Reply plain = client.call(CallNumber::cuMemAlloc_v2, kMiB);
  CHECK(client.call(CallNumber::cuMemPoolExportPointer, plain.handle).status ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(client.call(CallNumber::cuMemFree_v2, memory.handle).status == CUDA_SUCCESS);
  CHECK(client.call(CallNumber::cuMemPoolExportPointer, memory.handle).status ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(client.call(CallNumber::cuMemPoolDestroy, pool.handle).status == CUDA_SUCCESS);
  CHECK(!client.session->sharing.find(Kind::pool, nameIn(made)));
}

}  // namespace
