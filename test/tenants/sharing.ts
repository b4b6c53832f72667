import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { AllocationMessage } from '@nvidia-virtual/node-state/admin/messages';
import { environmentFor } from '../cuda-program.js';
import type { Case, Scene } from './scene.js';

const MIB = 2 ** 20;
const SHARED = 48;

export const sharing: Case = {
  name: 'sharing',
  about:
    'memory is shared within an allocation and charged once, also after its owner is killed; ' +
    'handles of another allocation, invented and old ones are refused',
  async play(scene) {
    await strangers(scene);
    await chargedOnce(scene);
    await survives(scene, 'frees it');
    await survives(scene, 'is killed');
  },
};

/** Only processes of the same allocation open a handle. */
async function strangers(scene: Scene): Promise<void> {
  const { node, tally } = scene;
  const [mine, other] = [
    await node.create({ memoryBytes: 128 * MIB }),
    await node.create({ memoryBytes: 128 * MIB }),
  ];
  const owner = await start(scene, mine, ['export', String(SHARED)]);
  const stranger = await start(scene, other, ['open', owner.line]);
  tally.judge('a handle of another allocation', refused(stranger));
  const guess = await start(scene, mine, ['open', 'ab'.repeat(64)]);
  tally.judge('an invented handle', refused(guess));
  const altered = await start(scene, mine, ['open', `${owner.line.slice(0, 126)}01`]);
  tally.judge('an altered handle', refused(altered));
  const friend = await start(scene, mine, ['open', owner.line]);
  tally.judge('a handle of the own allocation', opened(friend));
  end(stranger, guess, altered, friend, owner);
  await node.until(mine, (now) => now.memoryUsedBytes === 0);
  const late = await start(scene, mine, ['open', owner.line]);
  tally.judge('a handle of a process that has ended', refused(late));
  end(late);
}

async function chargedOnce(scene: Scene): Promise<void> {
  const { node, tally } = scene;
  const allocation = await node.create({ memoryBytes: 64 * MIB });
  const owner = await start(scene, allocation, ['export', String(SHARED)]);
  const before = await node.look(allocation);
  const user = await start(scene, allocation, ['open', owner.line]);
  tally.judge('a shared memory of three quarters of the quota', opened(user));
  const { memoryUsedBytes } = await node.look(allocation);
  const added = memoryUsedBytes - before.memoryUsedBytes;
  tally.judge(
    'memory that is opened',
    added < SHARED * MIB ? [] : [`${added} bytes more are charged`],
  );
  end(user, owner);
}

/** Memory that another process holds stays charged, until that process ends. */
async function survives(scene: Scene, how: 'frees it' | 'is killed'): Promise<void> {
  const { node, tally } = scene;
  const allocation = await node.create({ memoryBytes: 128 * MIB });
  const owner = await start(scene, allocation, ['export', String(SHARED)]);
  const user = await start(scene, allocation, ['open', owner.line]);
  tally.judge(`shared memory whose owner ${how}`, opened(user));
  if (how === 'is killed') {
    end(owner);
    await node.until(allocation, ({ sessions }) => sessions.length === 1);
  } else {
    owner.process.stdin?.write('\n');
    tally.judge('the end of shared memory', opened({ line: await nextLine(owner.process) }));
  }
  const { memoryUsedBytes } = await node.look(allocation);
  const held = memoryUsedBytes >= SHARED * MIB && memoryUsedBytes < 2 * SHARED * MIB;
  tally.judge(
    `shared memory whose owner ${how}`,
    held ? [] : [`${memoryUsedBytes} bytes are charged for ${SHARED} MiB`],
  );
  const second = await start(scene, allocation, ['open', owner.line]);
  tally.judge(`a handle whose owner ${how}`, refused(second));
  end(second, user, owner);
  const left = await node.until(allocation, (now) => now.memoryUsedBytes === 0);
  tally.judge(
    'shared memory that nobody holds',
    left.memoryUsedBytes === 0 ? [] : [`${left.memoryUsedBytes} bytes did not return`],
  );
}

interface Started {
  readonly process: ChildProcess;
  /** The first line that it printed. */
  readonly line: string;
}

async function start(
  { programs }: Scene,
  { socketPath }: AllocationMessage,
  words: readonly string[],
): Promise<Started> {
  const process = spawn(programs.sharing, words, {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: environmentFor(socketPath),
  });
  return { process, line: await nextLine(process) };
}

function nextLine({ stdout }: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    if (!stdout) return resolve('');
    const lines = createInterface(stdout);
    lines.once('line', (line) => {
      resolve(line);
      lines.close();
    });
    lines.once('close', () => resolve('it ended'));
  });
}

function end(...all: readonly Started[]): void {
  for (const { process } of all) process.kill('SIGKILL');
}

function opened({ line }: Pick<Started, 'line'>): string[] {
  return line === 'cudaSuccess' ? [] : [`it was refused: ${line}`];
}

function refused({ line }: Started): string[] {
  return line === 'cudaErrorInvalidValue' ? [] : [`the answer is ${line}`];
}
