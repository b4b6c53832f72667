import { locateInstallation } from '../host/installation.js';
import { clientEnvironment } from '../run/run.js';
import { RunningProgram } from './running-program.js';

/**
 * Holds GPU memory with random content, in buffers of the sizes that it gets as arguments. Commands
 * from standard input: `check` compares everything and writes new content; `grow SIZE` adds a
 * buffer. Answers `right` if all was as written.
 */
const KEEPING = `
start()
buffers = []
def write(address, size):
    content = os.urandom(size)
    must("cuMemcpyHtoD_v2", address, content, ctypes.c_size_t(size))
    return content
def add(size):
    address = ctypes.c_uint64()
    must("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
    buffers.append([address, write(address, size)])
def isRight(address, content):
    found = ctypes.create_string_buffer(len(content))
    must("cuMemcpyDtoH_v2", found, address, ctypes.c_size_t(len(content)))
    return found.raw == content
for size in sys.argv[1:]: add(int(size))
say("ready")
for line in sys.stdin:
    command, *sizes = line.split()
    if command == "grow": add(int(sizes[0]))
    right = all([isRight(*buffer) for buffer in buffers])
    for buffer in buffers: buffer[1] = write(buffer[0], len(buffer[1]))
    say("right" if right else "WRONG")
`;

/** A CUDA program that knows what its GPU memory must contain. */
export class KeepingProgram {
  readonly #program: RunningProgram;

  private constructor(program: RunningProgram) {
    this.#program = program;
  }

  /** @param sizes of its buffers */
  static async start(socket: string, sizes: readonly number[]): Promise<KeepingProgram> {
    const env = clientEnvironment(locateInstallation(), socket);
    const started = new KeepingProgram(new RunningProgram(KEEPING, env, sizes.map(String)));
    await started.#expect('ready');
    return started;
  }

  get pid(): number | undefined {
    return this.#program.pid;
  }

  /** Lets it check all content, and add a buffer of this size. Its answer is awaited by right(). */
  ask(growth = 0): void {
    this.#program.tell(growth > 0 ? `grow ${growth}` : 'check');
  }

  /** Requires that all was right when it was asked. */
  async right(): Promise<void> {
    await this.#expect('right');
  }

  async check(growth = 0): Promise<void> {
    this.ask(growth);
    await this.right();
  }

  kill(): void {
    this.#program.kill();
  }

  async #expect(line: string): Promise<void> {
    const said = await this.#program.line();
    if (said !== line) throw new Error(`the program says ${said} instead of ${line}`);
  }
}
