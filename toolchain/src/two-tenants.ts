import { once } from 'node:events';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type CommandResult, runCommand } from './command.js';
import { ToolchainError } from './errors.js';
import { GPU_PROXY } from './repository.js';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const TENANTS = [
  { name: 'anna', share: 25 },
  { name: 'ben', share: 75 },
];
const MEMORY = '256MiB';
/** Longer than the run of `top`, also on a busy machine. */
const BUSY_SECONDS = 8;
const MOMENTS = 3;

/** Output of `gpu-proxy top -o json`. */
interface Use {
  readonly allocations: readonly {
    readonly name: string;
    readonly time: { readonly granted: number; readonly overrun: number };
  }[];
}

/**
 * Runs two tenants at the same time on one GPU of a temporary node.
 * @param program runs for as many seconds as its argument says
 * @param heading prints what comes next
 * @returns whether both programs did their work
 */
export async function showTwoTenants(
  program: string,
  heading: (text: string) => void,
): Promise<boolean> {
  const interrupted = new AbortController();
  const interrupt = () => interrupted.abort();
  for (const signal of SIGNALS) process.on(signal, interrupt);
  const node = new TemporaryNode(interrupted.signal);
  try {
    heading('npx gpu-proxy serve --state DIR: a node, which grants parts of its GPUs');
    await node.ready;
    for (const { name, share } of TENANTS)
      await node.show('create', '--name', name, '--share', `${share}`, '--memory', MEMORY);

    heading(
      `Both at once: npx gpu-proxy run --state DIR --allocation NAME -- ${program} ${BUSY_SECONDS}`,
    );
    const runs = TENANTS.map(({ name }) => startProgram(node, name, [program, `${BUSY_SECONDS}`]));
    await Promise.race([
      Promise.all(runs.map(({ begun }) => begun)),
      Promise.all(runs.map(({ done }) => done)),
    ]);
    const before = await node.use();
    await node.show('top', '-n', `${MOMENTS}`);
    const after = await node.use();
    const statuses = await Promise.all(runs.map(({ done }) => done));
    if (interrupted.signal.aborted) throw new ToolchainError('Interrupted.');

    heading('How the GPU was divided while top looked on');
    sayShares(before, after);
    return statuses.every((status) => status === 0);
  } finally {
    await node.end();
    for (const signal of SIGNALS) process.off(signal, interrupt);
  }
}

/** `begun` resolves with its first output. */
function startProgram(node: TemporaryNode, name: string, command: readonly string[]) {
  let begin = () => {};
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const onLine = (line: string) => {
    console.log(`${name}: ${line}`);
    begin();
  };
  const done = node
    .command('run', ['--allocation', name, '--', ...command], onLine)
    .then(({ status }) => status);
  return { begun, done };
}

function sayShares(before: Use, after: Use): void {
  const used = TENANTS.map(({ name }) => usedBy(name, after) - usedBy(name, before));
  const total = used.reduce((sum, time) => sum + time, 0);
  TENANTS.forEach(({ name, share }, i) => {
    const time = used[i] ?? 0;
    console.log(
      `${name}: asked for ${share} %, got ${((time / (total || 1)) * 100).toFixed(1)} % ` +
        `(${(time / 1e9).toFixed(2)} s)`,
    );
  });
}

/** Nanoseconds used in its windows and after their end. */
function usedBy(name: string, { allocations }: Use): number {
  const { granted, overrun } = allocations.find((allocation) => allocation.name === name)?.time ?? {
    granted: 0,
    overrun: 0,
  };
  return granted + overrun;
}

/** `gpu-proxy serve` with a temporary state directory. */
class TemporaryNode {
  readonly ready: Promise<unknown>;
  readonly #state = mkdtempSync(path.join(tmpdir(), 'nvidia-virtual-demo-'));
  readonly #ending = new AbortController();
  readonly #served: Promise<CommandResult>;
  readonly #interrupted: AbortSignal;

  /**
   * @param interrupted aborts its commands. Ctrl-C does not reach the node itself: end() needs
   * it to clean up, and then ends it.
   */
  constructor(interrupted: AbortSignal) {
    this.#interrupted = interrupted;
    chmodSync(this.#state, 0o711); // workers run as other users and must pass through it
    let serving = () => {};
    const isServing = new Promise<void>((resolve) => {
      serving = resolve;
    });
    const onLine = (line: string) => line.includes('"serving"') && serving();
    const options = { onLine, detached: true, signal: this.#ending.signal };
    this.#served = runCommand(
      process.execPath,
      [GPU_PROXY, 'serve', '--state', this.#state],
      options,
    );
    const failed = this.#served.then(({ output }) =>
      Promise.reject(new ToolchainError(`The node could not serve:\n${output}`)),
    );
    this.ready = Promise.race([isServing, failed, once(interrupted, 'abort')]);
  }

  command(
    name: string,
    args: readonly string[],
    onLine?: (line: string) => void,
  ): Promise<CommandResult> {
    const all = [GPU_PROXY, name, '--state', this.#state, ...args];
    return runCommand(process.execPath, all, {
      signal: this.#interrupted,
      ...(onLine && { onLine }),
    });
  }

  async use(): Promise<Use> {
    return JSON.parse(await this.#mustSucceed('top', ['-n', '1', '-o', 'json']));
  }

  /** Runs and prints a gpu-proxy command. @throws ToolchainError if it fails */
  async show(name: string, ...args: string[]): Promise<void> {
    console.log(`$ npx gpu-proxy ${name} --state DIR ${args.join(' ')}`);
    await this.#mustSucceed(name, args, (line) => console.log(line));
  }

  async #mustSucceed(
    name: string,
    args: readonly string[],
    onLine?: (line: string) => void,
  ): Promise<string> {
    const { status, output } = await this.command(name, args, onLine);
    if (this.#interrupted.aborted) throw new ToolchainError('Interrupted.');
    if (status !== 0)
      throw new ToolchainError(`\`gpu-proxy ${name} ${args.join(' ')}\` failed:\n${output}`);
    return output;
  }

  /** Deletes its allocations if they exist, then ends the node. */
  async end(): Promise<void> {
    const remove = ({ name }: { name: string }) =>
      runCommand(process.execPath, [GPU_PROXY, 'delete', name, '--force', '--state', this.#state]);
    await Promise.all(TENANTS.map(remove));
    this.#ending.abort();
    await this.#served;
    endArbiter(path.join(this.#state, 'arbiter', 'arbiter.sock'));
    rmSync(this.#state, { recursive: true, force: true });
  }
}

/** Ends the arbiter, which would wait a minute for another node on the state directory. */
function endArbiter(socket: string): void {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      if (readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`--socket\0${socket}\0`))
        process.kill(Number(pid));
    } catch {} // it has already ended
  }
}
