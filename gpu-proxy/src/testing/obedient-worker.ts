import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { DEFAULT_ROOT } from '../host/installation.js';

const BUILT = process.env['NVIDIA_VIRTUAL_BUILD'] ?? DEFAULT_ROOT;

/**
 * A worker without a GPU. It has the commands of native/worker/session/control.h, answers as it is
 * told, and writes down what it gets. Its arena is mapped as a real worker's is. Each further query
 * for the driver goes to the real worker.
 */
const WORKER = `#!/usr/bin/env python3
import array, json, mmap, os, re, select, socket, sys, time
place = os.path.dirname(os.path.abspath(sys.argv[0]))
if "--control" not in sys.argv:
    os.execv(os.path.join(place, "real-worker"), sys.argv)
number = re.search(r"/sessions/(\\d+)/", sys.argv[sys.argv.index("--figures") + 1])[1]
def option(name, otherwise):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else otherwise
gpu = {"name": "none", "uuid": option("--place", option("--gpu", "none")), "memory": 0}
def answers():
    with open(os.path.join(place, "answers")) as file: told = json.load(file)
    return {**told.get("all", {}), **told.get(number, {})}

while "waits" in answers(): time.sleep(0.01)
started = {"event": "started", "pid": 1, "program": "x", "gpu": gpu, "driverVersion": 1}
os.write(4, (json.dumps(started) + "\\n").encode())
client, commands = socket.socket(fileno=3), socket.socket(fileno=6)
arenas, kept, out, gpu_now = [], [], 0, None

def hold():
    os.closerange(3, 7)
    while "passes" in answers(): time.sleep(0.01)
    os._exit(0)

def answer(whole, command, count, files):
    global arenas, kept, out, gpu_now
    told = answers()
    sizes = [f"{os.fstat(file).st_size}/{os.fstat(file).st_blocks * 512}" for file in files]
    with open(os.path.join(place, "commands"), "a") as log:
        print(number, whole if command == "move" else command, *sizes, file=log)
    line = told.get(whole, told.get(f"{command} on {gpu_now}", told.get(command, "done")))
    if command == "move" and line == "done": gpu_now = whole.split()[1]
    for file in files:
        arenas.append(mmap.mmap(file, os.fstat(file).st_size))
        arenas[-1][0:4] = b"left"
        if "passes" in told and os.fork() == 0: hold()
    if line == "done":
        lacking = out + count - sum(map(len, arenas))
        if command == "leave" and lacking > 0: return f"lacks {lacking}"
        out = {"leave": out + count, "enter": max(0, out - count), "resume": 0}.get(command, out)
        if command in ["leave", "enter"]: line = f"done {out}"
    if command == "drop" and line == "done":
        if "keep" in told: kept += arenas
        for arena in arenas:
            if "keep" not in told: arena.close()
        arenas = []
    return line

while True:
    ready, _, _ = select.select([client, commands], [], [])
    if client in ready and not client.recv(1000): sys.exit(0)
    if commands not in ready: continue
    text, control, _, _ = commands.recvmsg(100, socket.CMSG_SPACE(8))
    files = list(array.array("i", b"".join(data for _, _, data in control)))
    command, *count = text.decode().split()
    bytes = sum(map(int, filter(str.isdigit, count)))
    line = answer(text.decode(), command, bytes, files[1:])
    if line is None: continue
    if files: os.write(files[0], (line + "\\n").encode())
    for file in files: os.close(file)
`;

type Command =
  | 'suspend'
  | 'leave'
  | 'enter'
  | `move ${string}`
  | 'resume'
  /** Once it has moved to this GPU. */
  | `resume on ${string}`
  | 'drop';
/**
 * Answers by command; by default `done`. Null: it keeps silent. `keep`: it does not free an arena
 * that is dropped. `passes`: another process has its arenas, as long as it is told so.
 * `waits`: it does not report that its session has begun.
 */
type Answers = Partial<Record<Command, string | null>> & {
  readonly keep?: true;
  readonly passes?: true;
  readonly waits?: true;
};

/** Such workers for all sessions of a node, and what they do. */
export class ObedientWorkers {
  /** The executable. */
  readonly path: string;
  readonly #directory: string;
  #answers: Record<string, Answers> = {};

  constructor(directory: string) {
    this.#directory = directory;
    mkdirSync(directory, { recursive: true });
    this.path = path.join(directory, 'nvidia-virtual-worker');
    writeFileSync(this.path, WORKER, { mode: 0o755 });
    const real = path.join(BUILT, 'native', 'worker', 'nvidia-virtual-worker');
    symlinkSync(real, path.join(directory, 'real-worker'));
    writeFileSync(path.join(directory, 'commands'), '');
    this.tell({});
  }

  /** Creates a build with such workers, for NVIDIA_VIRTUAL_BUILD. */
  static inBuild(directory: string): ObedientWorkers {
    const native = path.join(directory, 'native');
    mkdirSync(native, { recursive: true });
    symlinkSync(path.join(BUILT, 'interposer'), path.join(directory, 'interposer'));
    for (const part of readdirSync(path.join(BUILT, 'native')).filter((name) => name !== 'worker'))
      symlinkSync(path.join(BUILT, 'native', part), path.join(native, part));
    return new ObedientWorkers(path.join(native, 'worker'));
  }

  /** Replaces the answers of all sessions, or of one. */
  tell(answers: Answers, session: number | 'all' = 'all'): void {
    this.#answers = { ...(session === 'all' ? {} : this.#answers), [session]: answers };
    const file = path.join(this.#directory, 'answers');
    writeFileSync(`${file}.new`, JSON.stringify(this.#answers));
    renameSync(`${file}.new`, file);
  }

  /** Empties the list of commands. */
  forget(): void {
    writeFileSync(path.join(this.#directory, 'commands'), '');
  }

  /** `SESSION COMMAND [SIZE/POPULATED]` of each command, in bytes. */
  get commands(): string[] {
    return readFileSync(path.join(this.#directory, 'commands'), 'utf8').split('\n').slice(0, -1);
  }
}
