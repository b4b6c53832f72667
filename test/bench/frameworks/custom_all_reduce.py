"""As vLLM reduces between processes: kernels that wait for flags in memory shared through IPC"""
# run: alone

import multiprocessing

from helpers.report import digest, report

SIZE, ROUNDS = 1 << 16, 20
SOURCE = r'''
extern "C" __global__ void reduce(const float* mine, const float* theirs, float* result,
                                  volatile unsigned* my_flag, volatile unsigned* their_flag,
                                  unsigned round, int size) {
  if (threadIdx.x == 0) {
    __threadfence_system();
    if (blockIdx.x == 0) *their_flag = round;
    while (*my_flag < round) {}
    __threadfence_system();
  }
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < size) result[i] = mine[i] + theirs[i];
}
'''


def rank(index, pipe):
    import cupy

    runtime = cupy.cuda.runtime
    runtime.setDevice(index % runtime.getDeviceCount())
    reduce = cupy.RawKernel(SOURCE, 'reduce')
    # Each in an allocation of its own: a handle is for a whole allocation.
    mine, flag = cupy.cuda.Memory(SIZE * 4), cupy.cuda.Memory(4)
    runtime.memset(flag.ptr, 0, 4)
    pipe.send([runtime.ipcGetMemHandle(memory.ptr) for memory in (mine, flag)])
    theirs, their_flag = (runtime.ipcOpenMemHandle(handle) for handle in pipe.recv())
    values = cupy.ndarray((SIZE,), cupy.float32, cupy.cuda.MemoryPointer(mine, 0))
    result = cupy.zeros(SIZE, cupy.float32)
    total = cupy.zeros(SIZE, cupy.float32)
    for step in range(1, ROUNDS + 1):
        values[:] = cupy.arange(SIZE, dtype=cupy.float32) * (index + step)
        arguments = (mine.ptr, theirs, result, flag.ptr, their_flag, cupy.uint32(step))
        reduce((SIZE // 256,), (256,), (*arguments, cupy.int32(SIZE)))
        total += result
        cupy.cuda.Device().synchronize()
        # Neither overwrites its values while the other may still read them.
        pipe.send('done')
        pipe.recv()
    pipe.send((digest(total.get()), float(result[1])))
    pipe.recv()
    runtime.ipcCloseMemHandle(theirs)
    runtime.ipcCloseMemHandle(their_flag)


def pump(pipes):
    """Passes each message of a rank to the other one, and returns the last ones."""
    count = 1 + ROUNDS + 1
    for _ in range(count):
        messages = [pipe.recv() for pipe in pipes]
        for pipe, message in zip(pipes, reversed(messages)):
            pipe.send(message)
    return messages


if __name__ == '__main__':
    context = multiprocessing.get_context('spawn')
    pairs = [context.Pipe() for _ in range(2)]
    ranks = [context.Process(target=rank, args=(i, pairs[i][1])) for i in range(2)]
    for process, (_, its_end) in zip(ranks, pairs):
        process.start()
        its_end.close()  # so that a rank that ends early is an error, not a wait
    (first, value), (second, _) = pump([pair[0] for pair in pairs])
    for process in ranks:
        process.join(timeout=30)
    assert first == second and value == 2 * ROUNDS + 1
    report(total=first, statuses=[process.exitcode for process in ranks])
