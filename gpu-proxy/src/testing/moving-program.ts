import { locateInstallation } from '../host/installation.js';
import { clientEnvironment } from '../run/run.js';
import { RunningProgram } from './running-program.js';

/**
 * Has memory with known content, a module with a counter, a stream, an event and a graph. For each
 * line of its input, it launches the kernel and the graph, and compares all. Answers `right UUID
 * ADDRESS` with the GPU that it sees. The line `grow` gives it as much memory once more, before.
 */
const MOVING = `
PTX = b""".version 7.0
.target sm_70
.address_size 64
.global .align 4 .u32 total = 1000;
.visible .entry add(.param .u64 at)
{
  .reg .u32 %r<2>;
  .reg .u64 %rd<3>;
  ld.param.u64 %rd1, [at];
  mov.u64 %rd2, total;
  ld.global.u32 %r1, [%rd2];
  add.u32 %r1, %r1, 1;
  st.global.u32 [%rd2], %r1;
  st.global.u32 [%rd1], %r1;
  ret;
}
"""
start()
size = int(sys.argv[1])
kept = []
def grow():
    content, place = os.urandom(size), ctypes.c_uint64()
    must("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(size))
    must("cuMemcpyHtoD_v2", place, content, ctypes.c_size_t(size))
    kept.append((place, content))
def isKept(place, content):
    found = ctypes.create_string_buffer(size)
    must("cuMemcpyDtoH_v2", found, place, ctypes.c_size_t(size))
    return found.raw == content
grow()
at = ctypes.c_uint64()
must("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(4))
module, add, stream = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
must("cuModuleLoadData", ctypes.byref(module), PTX)
must("cuModuleGetFunction", ctypes.byref(add), module, b"add")
must("cuStreamCreate", ctypes.byref(stream), 1)
event = ctypes.c_void_p()
must("cuEventCreate", ctypes.byref(event), 2)
must("cuEventRecord", event, stream)
arguments = (ctypes.c_void_p * 1)(ctypes.addressof(at))
def launch(): must("cuLaunchKernel", add, 1, 1, 1, 1, 1, 1, 0, stream, arguments, None)
must("cuStreamBeginCapture_v2", stream, 2)
launch()
must("cuStreamEndCapture", stream, ctypes.byref(graph))
must("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_ulonglong(0))
uuid, bus = (ctypes.c_ubyte * 16)(), ctypes.create_string_buffer(32)
def gpu():
    must("cuDeviceGetUuid_v2", uuid, 0)
    must("cuDeviceGetPCIBusId", bus, 32, 0)
    text = bytes(uuid).hex()
    parts = [text[:8], text[8:12], text[12:16], text[16:20], text[20:]]
    return "GPU-" + "-".join(parts) + " " + bus.value.decode()
total = 1000
say("ready")
for line in sys.stdin:
    if line == "grow\\n": grow()
    must("cuEventSynchronize", event)
    launch()
    must("cuGraphLaunch", executable, stream)
    must("cuEventRecord", event, stream)
    must("cuStreamSynchronize", stream)
    total += 2
    counted = ctypes.c_uint32()
    must("cuMemcpyDtoH_v2", ctypes.byref(counted), at, ctypes.c_size_t(4))
    right = all(isKept(*each) for each in kept) and counted.value == total
    say("right" if right else "WRONG", gpu())
`;

interface MovingOptions {
  readonly environment?: NodeJS.ProcessEnv;
  /** Words that start its command line. */
  readonly before?: readonly string[];
}

/** A CUDA program that must not notice that it moves. */
export class MovingProgram {
  readonly #program: RunningProgram;

  private constructor(program: RunningProgram) {
    this.#program = program;
  }

  /** @param size of its memory, in bytes */
  static async start(
    socket: string,
    size: number,
    { environment = {}, before = [] }: MovingOptions = {},
  ): Promise<MovingProgram> {
    const env = { ...clientEnvironment(locateInstallation(), socket), ...environment };
    const program = new RunningProgram(MOVING, env, [String(size)], before);
    const said = await program.line();
    if (said !== 'ready') throw new Error(`the program says ${said}`);
    return new MovingProgram(program);
  }

  get pid(): number | undefined {
    return this.#program.pid;
  }

  ask(): void {
    this.#program.tell('check');
  }

  /** Requires that all was right when it was asked. Returns UUID and PCI address of its GPU. */
  async right(): Promise<string> {
    const said = await this.#program.line();
    const [word, ...gpu] = said.split(' ');
    if (word !== 'right') throw new Error(`the program says ${said}`);
    return gpu.join(' ');
  }

  /** Gives it as much memory once more, with other content. Then as check(). */
  grow(): Promise<string> {
    this.#program.tell('grow');
    return this.right();
  }

  check(): Promise<string> {
    this.ask();
    return this.right();
  }

  kill(): void {
    this.#program.kill();
  }
}
