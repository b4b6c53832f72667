// A tenant with two GPUs whose kernels wait for each other through pinned memory, as kernels that
// communicate do.
//   gang gang START SECONDS MICROSECONDS  runs kernels of that duration on each GPU; each then
//                                         waits for its counterpart on the other GPU
// A round is one kernel on each GPU; four are in flight. The program ends when all kernels have
// met: after a deadlock it does not end.
#include <string>

#include "work_diary.h"

constexpr unsigned kGpus = 2, kInFlight = 4;

__global__ void meet(volatile unsigned* here, const volatile unsigned* there, unsigned round,
                     unsigned long long nanoseconds) {
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  while (now - begin < nanoseconds);
  *here = round;
  __threadfence_system();
  while (*there < round) __nanosleep(1000);
}

struct Gang {
  unsigned* met = nullptr;
  cudaStream_t streams[kGpus]{};
  cudaEvent_t done[kGpus][kInFlight]{};
  unsigned rounds = 0;

  Gang() {
    onBoth([&](unsigned gpu) {
      CHECK(cudaStreamCreateWithFlags(&streams[gpu], cudaStreamNonBlocking));
      for (cudaEvent_t& event : done[gpu])
        CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    });
    CHECK(cudaHostAlloc(&met, kGpus * sizeof *met, cudaHostAllocPortable));
    std::fill_n(met, kGpus, 0u);
  }
  template <class Body>
  void onBoth(Body body) {
    for (unsigned gpu = 0; gpu < kGpus; ++gpu) CHECK(cudaSetDevice(gpu)), body(gpu);
  }
  void round(unsigned long long nanoseconds) {
    const unsigned place = rounds++ % kInFlight;
    onBoth([&](unsigned gpu) { CHECK(cudaEventSynchronize(done[gpu][place])); });
    onBoth([&](unsigned gpu) {
      meet<<<1, 1, 0, streams[gpu]>>>(met + gpu, met + 1 - gpu, rounds, nanoseconds);
      CHECK(cudaGetLastError());
    });
    onBoth([&](unsigned gpu) { CHECK(cudaEventRecord(done[gpu][place], streams[gpu])); });
  }
  void finish() {
    onBoth([&](unsigned gpu) { CHECK(cudaStreamSynchronize(streams[gpu])); });
  }
};

int main(int count, char** arguments) {
  if (count != 5 || std::string(arguments[1]) != "gang")
    return std::fprintf(stderr, "see the head of gang.cu\n"), 2;
  const auto nanoseconds = static_cast<unsigned long long>(std::atof(arguments[4]) * 1000);
  Gang gang;
  gang.round(0);  // load the kernels before the time begins
  gang.finish();
  Diary diary;
  diary.keep(std::atof(arguments[2]), std::atof(arguments[3]), [&] { gang.round(nanoseconds); });
  gang.finish();
  diary.tell();
}
