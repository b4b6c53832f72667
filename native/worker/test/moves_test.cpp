// A program whose managed memory moves, with the library that pods get, the worker, and a driver
// that fails where a test wants it: no work runs on old data, nothing hangs, and nothing is lost.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "cuda_abi.h"
#include "native/worker/test/command.h"
#include "native/worker/test/unwilling_moves.h"
#include "test/unit/program.h"
#include "test/unit/waiting.h"

namespace {

using worker::test::Order;
using Word = unsigned long long;

constexpr std::size_t kBytes = std::size_t{3} << 20, kWords = kBytes / sizeof(Word);
constexpr std::size_t kFar = kWords / 2;  ///< a word in another block than the first one

/// Starts the worker of one program, as gpu-proxy does, in a process of its own.
void serve(int listener, int control) {
  const int connection = accept(listener, nullptr, nullptr);
  const int held = fcntl(connection, F_DUPFD, 10), report = open("/dev/null", O_WRONLY);
  const int commands = fcntl(control, F_DUPFD, 10);
  dup2(held, 3);
  dup2(report, 4);
  dup2(commands, 6);
  close(held);
  close(commands);
  execl(unit::argument(0, "the path of the worker"), "worker", "--driver",
        unit::argument(1, "the path of the unwilling driver"), "--moves-managed", "--control",
        nullptr);
  _exit(127);
}

int listenAt(const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::strncpy(name.sun_path, path.c_str(), sizeof name.sun_path - 1);
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  if (bind(listener, reinterpret_cast<sockaddr*>(&name), sizeof name) != 0 ||
      listen(listener, 1) != 0)
    std::abort();
  return listener;
}

struct Program {
  std::string directory;
  pid_t worker = -1;
  int commands = -1;  ///< gpu-proxy's end of the worker's socket for commands
  CUcontext context = nullptr;
  CUdeviceptr plain = 0;  ///< memory of the GPU that does not move

  Program() {
    alarm(30);  // what hangs has failed
    char name[] = "/tmp/movesXXXXXX";
    directory = mkdtemp(name);
    const std::string path = directory + "/gpu.sock";
    setenv("NVIDIA_VIRTUAL_SOCKET", path.c_str(), 1);
    setenv("CUDA_LOG_FILE", logPath().c_str(), 1);
    const int listener = listenAt(path);
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) == 0);
    commands = ends[0];
    worker = fork();
    if (worker == 0) serve(listener, ends[1]);
    close(listener);
    close(ends[1]);
    REQUIRE(cuInit(0) == CUDA_SUCCESS);
    REQUIRE(cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS);
    REQUIRE(cuMemAlloc_v2(&plain, kBytes) == CUDA_SUCCESS);
    REQUIRE(cuMemsetD8_v2(plain, 1, kBytes) == CUDA_SUCCESS);
  }
  ~Program() {
    kill(worker, SIGKILL);
    waitpid(worker, nullptr, 0);
    close(commands);
    for (const std::string& file : {directory + "/gpu.sock", logPath()}) unlink(file.c_str());
    rmdir(directory.c_str());
  }

  std::string logPath() const { return directory + "/log"; }
  /// Moving memory, all of it written by the program.
  static Word* allocate(Word value) {
    CUdeviceptr address = 0;
    REQUIRE(cuMemAllocManaged(&address, kBytes, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
    Word* const words = reinterpret_cast<Word*>(address);
    std::fill_n(words, kWords, value);
    return words;
  }
  /// Work that reads the memory, and needs all of it on the GPU.
  CUresult work(const Word* words) const {
    const CUresult status = cuMemcpyDtoD_v2(plain, reinterpret_cast<CUdeviceptr>(words), kBytes);
    return status == CUDA_SUCCESS ? cuCtxSynchronize() : status;
  }
  std::vector<Word> result() const {
    std::vector<Word> words(kWords);
    CHECK(cuMemcpyDtoH_v2(words.data(), plain, kBytes) == CUDA_SUCCESS);
    return words;
  }
};

void inProgram(const std::function<void(Program&)>& body) {
  if (access("/dev/userfaultfd", R_OK | W_OK) != 0)
    return unit::skip("needs /dev/userfaultfd, which root has on Linux 6.6");
  unit::inChild([&] {
    Program program;
    body(program);
  });
}

Word& order(Word* words, Order what) { return words[0] = static_cast<Word>(what); }

TEST_CASE("work fails if its memory did not reach the GPU, and is not submitted") {
  inProgram([](Program& program) {
    Word* const words = Program::allocate(7);
    order(words, Order::failToGpu);
    CHECK(program.work(words) == CUDA_ERROR_OPERATING_SYSTEM);
    CHECK(cuMemPrefetchAsync(reinterpret_cast<CUdeviceptr>(words), kBytes, 0, nullptr) ==
          CUDA_ERROR_OPERATING_SYSTEM);
    CHECK(words[kFar] == 7);
    words[0] = 8;
    CHECK(program.result() == std::vector<Word>(kWords, 0x0101'0101'0101'0101));
    CHECK(program.work(words) == CUDA_SUCCESS);
    CHECK(program.result()[0] == 8);
    CHECK(program.result()[kFar] == 7);
  });
}

/// Whether this process has the page in its page table.
bool isPresent(const Word* address) {
  std::uint64_t entry = 0;
  const int pages = open("/proc/self/pagemap", O_RDONLY);
  const auto page = reinterpret_cast<std::uint64_t>(address) / 4096;
  CHECK(pread(pages, &entry, sizeof entry, static_cast<off_t>(page * sizeof entry)) ==
        sizeof entry);
  close(pages);
  return entry >> 63 != 0;
}

TEST_CASE("a block that is read during a failed move is sent with the next one") {
  inProgram([](Program& program) {
    Word* const words = Program::allocate(7);
    CHECK(program.work(words) == CUDA_SUCCESS);
    std::fill_n(words, kWords, 9);
    order(words, Order::failToGpu);
    CHECK(isPresent(words + kFar));
    CUresult status = CUDA_SUCCESS;
    unit::Waiter worker([&] {
      cuCtxSetCurrent(program.context);
      status = program.work(words);
    });
    CHECK(unit::comesTrue([&] { return !isPresent(words + kFar); }));
    CHECK(static_cast<volatile Word*>(words)[kFar] == 9);
    worker.join();
    CHECK(status == CUDA_ERROR_OPERATING_SYSTEM);
    words[0] = 9;
    CHECK(program.work(words) == CUDA_SUCCESS);
    CHECK(program.result() == std::vector<Word>(kWords, 9));
  });
}

/// From now on the system starts no thread.
void forbidThreads() {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{static_cast<unsigned short>(std::size(code)), code};
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
}

TEST_CASE("without a thread that answers accesses, memory stays in host memory") {
  inProgram([](Program& program) {
    forbidThreads();
    Word* const words = Program::allocate(7);
    CHECK(program.work(words) == CUDA_SUCCESS);
    CHECK(program.result() == std::vector<Word>(kWords, 7));
    CHECK(cuMemsetD8_v2(reinterpret_cast<CUdeviceptr>(words), 0, kBytes) == CUDA_SUCCESS);
    CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
    CHECK(words[kFar] == 0);
  });
}

TEST_CASE("a free waits for work that another thread ends") {
  inProgram([](Program& program) {
    Word* const freed = Program::allocate(7);
    Word* const other = Program::allocate(8);
    CHECK(program.work(freed) == CUDA_SUCCESS);
    CUstream waiting = nullptr, writing = nullptr;
    CHECK(cuStreamCreate(&waiting, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    CHECK(cuStreamCreate(&writing, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    CHECK(cuStreamWaitValue32_v2(waiting, program.plain, 42, CU_STREAM_WAIT_VALUE_EQ) ==
          CUDA_SUCCESS);
    unit::Waiter free([&] {
      cuCtxSetCurrent(program.context);
      CHECK(cuMemFree_v2(reinterpret_cast<CUdeviceptr>(freed)) == CUDA_SUCCESS);
    });
    CHECK(free.waits());
    other[kFar] = 9;  // so that the next work moves it
    CHECK(cuMemsetD32Async(program.plain, 42, 1, writing) == CUDA_SUCCESS);
    free.join();
    CHECK(program.work(other) == CUDA_SUCCESS);
    CHECK(program.result()[kFar] == 9);
  });
}

/// A host function that accesses memory once it may.
struct Access {
  const volatile Word* word;
  std::atomic<bool> may{false};
  std::atomic<Word> found{0};

  static void run(void* self) {
    auto* const access = static_cast<Access*>(self);
    access->may.wait(false);
    access->found = *access->word;
  }
};

TEST_CASE("a host function that accesses memory on the GPU ends while the program is suspended") {
  inProgram([](Program& program) {
    Word* const freed = Program::allocate(7);
    Word* const words = Program::allocate(8);
    CHECK(program.work(freed) == CUDA_SUCCESS);
    CHECK(program.work(words) == CUDA_SUCCESS);
    CHECK(!isPresent(words + kFar));
    Access access{words + kFar};
    CHECK(cuLaunchHostFunc(nullptr, Access::run, &access) == CUDA_SUCCESS);
    unit::Waiter free([&] {
      cuCtxSetCurrent(program.context);
      CHECK(cuMemFree_v2(reinterpret_cast<CUdeviceptr>(freed)) == CUDA_SUCCESS);
    });
    CHECK(free.waits());
    std::atomic<bool> ends{false};
    std::atomic<unsigned> calls{0};
    unit::Waiter caller([&] {
      cuCtxSetCurrent(program.context);
      for (std::size_t left = 0, total = 0; !ends; ++calls) cuMemGetInfo_v2(&left, &total);
    });
    CHECK(unit::comesTrue([&] { return calls > 0; }));
    const int answer = worker::test::sendCommand(program.commands, "suspend 20000");
    unsigned before = 0, same = 0;
    CHECK(unit::comesTrue([&] {
      const unsigned now = calls;
      same = now == before ? same + 1 : 0;
      before = now;
      return same == 40;  // its calls are stopped
    }));
    access.may = true;
    access.may.notify_all();
    CHECK(worker::test::awaitAnswer(answer).starts_with("done "));
    CHECK(access.found == 8);
    ends = true;
    CHECK(worker::test::awaitAnswer(worker::test::sendCommand(program.commands, "resume")) ==
          "done\n");
  });
}

TEST_CASE("if the worker ends while memory goes to the GPU, work fails and the program keeps it") {
  inProgram([](Program& program) {
    Word* const words = Program::allocate(7);
    CHECK(program.work(words) == CUDA_SUCCESS);
    std::fill_n(words, kWords, 8);
    order(words, Order::dieToGpu);
    CHECK(program.work(words) == CUDA_ERROR_DEVICE_UNAVAILABLE);
    CHECK(words[0] == static_cast<Word>(Order::dieToGpu));
    CHECK(words[kFar] == 8);
  });
}

/// An access to memory that cannot come back ends with SIGBUS, and a sentence in the log.
void losesMemory(Order what) {
  inProgram([what](Program& program) {
    Word* const words = Program::allocate(7);
    order(words, what);
    CHECK(program.work(words) == CUDA_SUCCESS);
    std::signal(SIGBUS, [](int) {
      static char text[16384];
      const int log = open(std::getenv("CUDA_LOG_FILE"), O_RDONLY);
      [[maybe_unused]] const auto bytes = read(log, text, sizeof text - 1);
      _exit(std::strstr(text, "cannot come back from the GPU") != nullptr ? 0 : 2);
    });
    CHECK(static_cast<volatile Word*>(words)[0] != 0);
    FAIL_CHECK("the access has succeeded");
  });
}

TEST_CASE("memory that the driver does not copy back gives SIGBUS") {
  losesMemory(Order::failToHost);
}

TEST_CASE("memory of a worker that ends while it comes back gives SIGBUS") {
  losesMemory(Order::dieToHost);
}

// The child sees nothing of it, and its end takes nothing away.
TEST_CASE("a child that is forked while memory moves changes nothing") {
  inProgram([](Program& program) {
    Word* const words = Program::allocate(7);
    unit::Waiter forks([] {
      for (int i = 0; i < 50; ++i) {
        const pid_t child = fork();
        if (child == 0) _exit(0);
        waitpid(child, nullptr, 0);
      }
    });
    for (Word value = 8; value < 8 + 50; ++value) {
      words[kFar] = value;
      CHECK(program.work(words) == CUDA_SUCCESS);
      CHECK(words[kFar] == value);
    }
    forks.join();
    CHECK(program.result()[kFar] == 57);
  });
}

}  // namespace
