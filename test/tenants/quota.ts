import { type ChildProcess, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import type { AllocationMessage } from '@nvidia-virtual/node-state/admin/messages';
import { runChild } from '../child.js';
import { environmentFor } from '../cuda-program.js';
import type { Case, Scene } from './scene.js';

const MIB = 2 ** 20;
const ROUNDS = 50;
const PATIENCE_S = 120;

export const quota: Case = {
  name: 'quota',
  about:
    'two processes compete for the last MiB, allocations are independent, ' +
    'memory of a killed process is released, the heap of kernels is charged',
  async play(scene) {
    await race(scene);
    await apart(scene);
    await returned(scene);
    await heap(scene);
  },
};

/** Exactly one of two processes gets the last MiB. */
async function race({ node, programs, directory, tally }: Scene): Promise<void> {
  const allocation = await node.create({ memoryBytes: 64 * MIB });
  const meeting = path.join(directory, 'meeting');
  writeFileSync(meeting, Buffer.alloc(4096));
  const run = (self: number) =>
    runChild(programs.quota, ['race', meeting, String(self), String(ROUNDS)], {
      cwd: '/',
      env: environmentFor(allocation.socketPath),
      seconds: PATIENCE_S,
    });
  const [one, other] = await Promise.all([run(0), run(1)]);
  for (let round = 0; round < ROUNDS; round++) {
    const got = Number(one.stdout[round]) + Number(other.stdout[round]);
    tally.judge(
      `race ${round + 1} for the last MiB`,
      got === 1 ? [] : [`${got} of two processes got it ${one.stderr}${other.stderr}`],
    );
  }
  const winner = one.stdout.split('1').length - 1;
  console.log(
    `of ${ROUNDS} races for the last MiB the process that had filled the quota won ${winner}`,
  );
}

/** An allocation sees its own quota, all of it, whatever another uses. */
async function apart(scene: Scene): Promise<void> {
  const { node, tally } = scene;
  const [full, free] = [
    await node.create({ memoryBytes: 64 * MIB }),
    await node.create({ memoryBytes: 96 * MIB }),
  ];
  const filler = await fill(scene, full);
  tally.judge(
    'a full allocation',
    filler.pieces <= 64 && filler.pieces >= 62 ? [] : [`64 MiB were ${filler.pieces} MiB`],
  );
  const seen = await look(scene, free);
  tally.judge(
    'an allocation beside a full one',
    seen === `${96 * MIB} ${96 * MIB}` ? [] : [`it sees ${seen} free and total bytes`],
  );
  const other = await fill(scene, free);
  tally.judge(
    'an allocation beside a full one',
    other.pieces > 92 ? [] : [`96 MiB were ${other.pieces} MiB`],
  );
  const { memoryUsedBytes } = await node.look(full);
  tally.judge(
    'a full allocation',
    memoryUsedBytes <= 64 * MIB ? [] : [`it holds ${memoryUsedBytes} bytes`],
  );
  for (const { process } of [filler, other]) process.kill('SIGKILL');
}

async function returned(scene: Scene): Promise<void> {
  const { node, tally } = scene;
  const allocation = await node.create({ memoryBytes: 64 * MIB });
  const empty = await look(scene, allocation);
  const first = await fill(scene, allocation);
  first.process.kill('SIGKILL');
  const { memoryUsedBytes } = await node.until(allocation, (now) => now.memoryUsedBytes === 0);
  tally.judge(
    'what a killed process had',
    memoryUsedBytes === 0 ? [] : [`${memoryUsedBytes} bytes did not return`],
  );
  const again = await look(scene, allocation);
  tally.judge(
    'the next program',
    again === empty ? [] : [`it sees ${again} free and total bytes, the first one saw ${empty}`],
  );
  const second = await fill(scene, allocation);
  tally.judge(
    'the next program',
    second.pieces === first.pieces
      ? []
      : [`it gets ${second.pieces} MiB, the first one got ${first.pieces}`],
  );
  second.process.kill('SIGKILL');
}

/** Code that calls malloc makes the driver allocate 8 MiB, which are charged to the program. */
async function heap({ node, programs, tally }: Scene): Promise<void> {
  const run = async (memoryBytes: number) => {
    const { socketPath } = await node.create({ memoryBytes });
    return runChild(programs.heap, [], {
      cwd: '/',
      env: environmentFor(socketPath),
      seconds: PATIENCE_S,
    });
  };
  const { stdout, stderr } = await run(64 * MIB);
  const [used, got] = stdout.split(' ').map(Number);
  tally.judge(
    'malloc of a kernel',
    got === 1 && used === 8 * MIB ? [] : [`it answered ${stdout}${stderr}`],
  );
  const refused = await run(4 * MIB);
  const told = refused.status !== 0 && /cudaErrorMemoryAllocation/.test(refused.stderr);
  tally.judge(
    'malloc of a kernel where its heap does not fit',
    told ? [] : [`it heard: ${refused.stdout}${refused.stderr}`],
  );
}

/** A process that has allocated all it could. */
export async function fill(
  { programs }: Scene,
  { socketPath }: AllocationMessage,
): Promise<{ process: ChildProcess; pieces: number }> {
  const process = spawn(programs.quota, ['fill'], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: environmentFor(socketPath),
  });
  for await (const line of createInterface(process.stdout))
    return { process, pieces: Number(line) };
  return { process, pieces: 0 };
}

/** Free and total bytes, as a program sees them. */
async function look({ programs }: Scene, { socketPath }: AllocationMessage): Promise<string> {
  const { stdout, stderr } = await runChild(programs.quota, ['look'], {
    cwd: '/',
    env: environmentFor(socketPath),
    seconds: PATIENCE_S,
  });
  return `${stdout.trim()}${stderr}`;
}
