// A malicious tenant. It prints `ready` when its attack has begun, and runs until it is killed.
//   malice connections SOCKET COUNT  that many connections, without any data
//   malice hellos SOCKET             connections that begin with garbage, one after the other
//   malice socket                    sessions with garbage on their sockets
//   malice rings                     sessions with garbage in all memory that is shared with the
//                                    worker, during calls
//   malice truncate                  sessions whose shared files are not sealed, and are truncated
//                                    after they were sent
//   malice silence                   kernels that print, while nothing reads the output
//   malice flood                     launches on many streams from many threads without a wait
//   malice long SECONDS              a kernel of that duration, again and again
//   malice threads                   an unlimited number of threads that use CUDA
//   malice reports                   an unlimited number of names of missing calls, for the report
//   malice tame MODE ...             the same load without the attack, for comparison
// It replaces functions of the C library to reach the shared memory of libcuda.so.1. Any program
// may do so.
#include <cuda_runtime.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

static std::atomic<int> sessionSocket{-1};
static std::atomic<bool> keepsSeals{true}, cutsFiles{false}, reads{true};
static bool tame = false;

/// Replaces functions of the C library: sent messages, their descriptors, and received messages.
extern "C" ssize_t sendmsg(int socket, const msghdr* message, int flags) {
  sessionSocket = socket;
  const cmsghdr* entry = CMSG_FIRSTHDR(message);
  int file = -1;
  if (entry != nullptr && entry->cmsg_type == SCM_RIGHTS)
    std::memcpy(&file, CMSG_DATA(entry), sizeof file);
  if (file >= 0) file = dup(file);
  const ssize_t sent = syscall(SYS_sendmsg, socket, message, flags);
  if (file >= 0 && cutsFiles && ftruncate(file, 0) == 0) std::fprintf(stderr, "cut a file off\n");
  if (file >= 0) close(file);
  return sent;
}

extern "C" ssize_t recvmsg(int socket, msghdr* message, int flags) {
  while (!reads) pause();
  return syscall(SYS_recvmsg, socket, message, flags);
}

extern "C" int fcntl(int file, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  const long argument = va_arg(arguments, long);
  va_end(arguments);
  if (command == F_ADD_SEALS && !keepsSeals) return 0;
  return static_cast<int>(syscall(SYS_fcntl, file, command, argument));
}

static std::minstd_rand random_(static_cast<unsigned>(getpid()));

/// For progress messages; kernels print to standard output, too.
static const int said = dup(STDOUT_FILENO);

static void ready() {
  if (write(said, "ready\n", 6) < 0) std::abort();
}

__global__ void nothing() {}
__global__ void print() {
  printf(
      "%d says what nobody reads, and says it at length so that every buffer on the way is full "
      "soon\n",
      threadIdx.x);
}
__global__ void spin(unsigned long long nanoseconds) {
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  while (now - begin < nanoseconds);
}

static int connectTo(const char* path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  const int connection = socket(AF_UNIX, SOCK_STREAM, 0);
  if (connection >= 0 &&
      connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
    return connection;
  if (connection >= 0) close(connection);
  return -1;
}

static void sendGarbage(int connection, std::size_t bytes) {
  std::string garbage(bytes, '\0');
  for (char& c : garbage) c = static_cast<char>(random_());
  // Sometimes a valid message length, so that the peer waits for the message.
  if (random_() % 2 == 0 && bytes >= 8) std::memcpy(garbage.data(), "\1\0\0\0\377\0\0\0", 8);
  if (send(connection, garbage.data(), bytes, MSG_NOSIGNAL) < 0) return;
}

static void connections(const char* path, int count) {
  if (tame) count = 0;
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  int made = 0;
  for (; made < count && connectTo(path) >= 0; ++made) {
  }
  std::fprintf(stderr, "%d connections\n", made);
  ready();
  while (true) pause();
}

static void hellos(const char* path) {
  while (tame) ready(), pause();
  for (int i = 0;; ++i) {
    if (i == 100) ready();
    const int connection = connectTo(path);
    if (connection < 0) continue;
    sendGarbage(connection, 1 + random_() % 4096);
    usleep(2000);
    close(connection);
  }
}

static void garbageOnTheSocket() {
  cudaFree(nullptr);
  if (!tame) sendGarbage(sessionSocket, 1 + random_() % 65536);
  cudaDeviceSynchronize();
}

/// Every shared, writable mapping of an anonymous file.
static std::vector<std::pair<std::uint64_t*, std::size_t>> sharedMemory() {
  std::vector<std::pair<std::uint64_t*, std::size_t>> found;
  FILE* maps = std::fopen("/proc/self/maps", "r");
  char line[512], rights[8], name[256];
  unsigned long begin, end;
  while (std::fgets(line, sizeof line, maps) != nullptr) {
    name[0] = '\0';
    if (std::sscanf(line, "%lx-%lx %7s %*s %*s %*s %255s", &begin, &end, rights, name) < 3)
      continue;
    if (std::strcmp(rights, "rw-s") == 0 && std::strstr(name, "memfd:") != nullptr)
      found.emplace_back(reinterpret_cast<std::uint64_t*>(begin), (end - begin) / 8);
  }
  std::fclose(maps);
  return found;
}

static void garbageInTheRings() {
  void* pinned = nullptr;
  int* device = nullptr;
  cudaMallocHost(&pinned, 1 << 20);
  cudaMalloc(&device, 1 << 20);
  std::thread([] {
    while (!tame) {
      for (const auto& [words, count] : sharedMemory()) {
        // Half of the writes hit the words of the channel; small numbers pass as lengths.
        for (int i = 0; i < 8; ++i) {
          words[random_() % (i % 2 == 0 ? std::min<std::size_t>(512, count) : count)] =
              random_() % 2 == 0 ? random_() % 4096 : std::uint64_t{random_()} << 32;
        }
      }
    }
  }).detach();
  alarm(1);  // it may block itself forever
  for (cudaError_t result = cudaSuccess; result != cudaErrorDevicesUnavailable;
       result = cudaDeviceSynchronize()) {
    nothing<<<1, 1>>>();
    cudaMemcpy(device, pinned, 1 << 16, cudaMemcpyHostToDevice);
    cudaMemset(device, 0, 4096);
    cudaGetLastError();
  }
}

static void truncateFiles() {
  cudaFree(nullptr);
  keepsSeals = tame;
  cutsFiles = !tame;
  void* pinned = nullptr;
  // A pinned buffer, or the channel of another thread: the first refusal ends the session.
  if (random_() % 2 == 0) cudaMallocHost(&pinned, 1 << 20);
  std::thread([] { cudaDeviceSynchronize(); }).join();
}

/// Operations that end the session, and possibly this process, run sequentially.
static void againAndAgain(void (*malice)()) {
  for (int i = 0;; ++i) {
    if (i == 10) ready();
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      random_.seed(getpid());
      malice(), _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
  }
}

static void silence() {
  if (std::freopen("/dev/null", "w", stdout) == nullptr) std::abort();
  cudaFree(nullptr);
  reads = tame;
  std::thread([] { sleep(3), ready(); }).detach();
  while (true) print<<<8, 64>>>();
}

static void flood() {
  for (int thread = 0; thread < 4; ++thread) {
    std::thread([] {
      std::vector<cudaStream_t> streams(64);
      for (auto& stream : streams) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
      for (unsigned i = 0;; ++i) {
        nothing<<<1, 32, 0, streams[i % streams.size()]>>>();
        if (tame && i % streams.size() == 0) cudaDeviceSynchronize();
      }
    }).detach();
  }
  usleep(300'000);
  ready();
  while (true) pause();
}

static void longKernels(int seconds) {
  cudaFree(nullptr);
  const unsigned long long length = tame ? 1'000'000 : seconds * 1'000'000'000ull;
  spin<<<1, 1>>>(length);
  ready();
  while (true) {
    cudaDeviceSynchronize();
    spin<<<1, 1>>>(length);
  }
}

static void threads() {
  constexpr int kReasonable = 32;
  for (int i = 0;; ++i) {
    while (tame && i == kReasonable) ready(), pause();
    try {
      std::thread([] {
        cudaStreamQuery(nullptr);
        pause();
      }).detach();
    } catch (const std::system_error&) {
      usleep(1000);
    }
    if (i == 200) ready();
    usleep(500);
  }
}

static void reports() {
  cudaFree(nullptr);
  constexpr int kMany = 10'000;
  constexpr std::uint32_t kUnsupported = 8;  // wire/message.h
  struct {
    std::uint32_t kind = kUnsupported, bytes = sizeof name;
    std::uint64_t id = 0;
    char name[64];
  } message;
  for (int i = 0;; ++i) {
    if (tame || i == kMany) ready();
    while (tame) pause();
    for (char& c : message.name) c = static_cast<char>('a' + random_() % 26);
    if (send(sessionSocket, &message, sizeof message, MSG_NOSIGNAL) < 0) std::exit(1);
  }
}

int main(int count, char** arguments) {
  tame = count > 1 && std::strcmp(arguments[1], "tame") == 0;
  if (tame) --count, ++arguments;
  const std::string mode = count > 1 ? arguments[1] : "";
  if (mode == "connections" && count == 4)
    return connections(arguments[2], std::atoi(arguments[3])), 0;
  if (mode == "hellos" && count == 3) return hellos(arguments[2]), 0;
  if (mode == "socket") return againAndAgain(garbageOnTheSocket), 0;
  if (mode == "rings") return againAndAgain(garbageInTheRings), 0;
  if (mode == "truncate") return againAndAgain(truncateFiles), 0;
  if (mode == "silence") return silence(), 0;
  if (mode == "flood") return flood(), 0;
  if (mode == "long" && count == 3) return longKernels(std::atoi(arguments[2])), 0;
  if (mode == "threads") return threads(), 0;
  if (mode == "reports") return reports(), 0;
  return std::fprintf(stderr, "see the head of malice.cu\n"), 2;
}
