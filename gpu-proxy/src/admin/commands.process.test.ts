import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { NodeUseMessage } from '@nvidia-virtual/node-state/admin/messages';
import { eventually, until } from '@nvidia-virtual/service/testing/eventually';
import { locateInstallation } from '../host/installation.js';
import { clientEnvironment } from '../run/run.js';
import { CommandUnderTest, gpuProxy, Place } from '../testing/command-under-test.js';
import { withCriu } from '../testing/criu.js';
import { cudaProgram } from '../testing/cuda-program.js';
import { killArbiter } from '../testing/kill-arbiter.js';

const HOLDING = cudaProgram(
  'start(); say("got", alloc(100 * MiB)); sys.stdin.readline(); say("then", alloc(MiB))',
);

let place: Place;
let state: string;
let server: CommandUnderTest;
let programs: CommandUnderTest[];

beforeEach(async () => {
  programs = [];
  place = new Place();
  state = path.join(place.directory, 'state');
  await serve();
});
afterEach(async () => {
  for (const program of programs) program.process.kill('SIGKILL');
  server.process.kill('SIGTERM');
  await server.end();
  killArbiter(state);
  place.remove();
});

async function serve(options: string[] = [], env: NodeJS.ProcessEnv = {}): Promise<void> {
  const words = ['serve', '--state', state, '--backend', 'simulated', ...options];
  server = new CommandUnderTest(place, words, env);
  await server.printed('"msg":"serving"');
}

function there(command: string, ...args: string[]) {
  return gpuProxy(place, command, '--state', state, ...args);
}

async function create(...args: string[]): Promise<string> {
  const { status, stdout, stderr } = await there('create', ...args);
  expect([status, stderr]).toEqual([0, '']);
  return stdout.split(' ')[0] as string;
}

function runThere(...args: string[]): CommandUnderTest {
  const words = ['run', '--state', state, ...args, '--', ...HOLDING];
  const program = new CommandUnderTest(place, words);
  programs.push(program);
  return program;
}

async function finish(program: CommandUnderTest): Promise<string> {
  program.process.stdin.end('\n');
  const { status, stdout, stderr } = await program.end();
  expect([status, stderr]).toEqual([0, '']);
  return stdout;
}

test('suspend and resume: the calls of a program wait meanwhile', async () => {
  const id = await create('--name', 'train', '--memory', '1GiB');
  const program = runThere('--allocation', 'train');
  await program.printed('got 0');
  expect((await there('suspend', 'train')).stdout).toMatch(
    /^\w+ is suspended: 100 MiB left the GPU in [\d.]+ s, and the CUDA calls of .* until .*\n$/,
  );
  expect((await there('suspend', 'train')).stdout).toContain(`${id} is suspended: `);
  expect((await there('ls')).stdout).toMatch(/ train .* 100 MiB +100 MiB .* out$/m);
  expect((await there('top', '-n', '1')).stdout).toMatch(/ 1 session, out$/m);
  program.process.stdin.end('\n');
  expect((await there('resume', id)).stdout).toMatch(
    /^\w+ is resumed: 100 MiB came back in [\d.]+ s\n$/,
  );
  expect((await there('resume', id)).stdout).toBe(`${id} is resumed\n`);
  expect((await there('ls')).stdout).toMatch(/ train .* resident$/m);
  expect((await program.end()).stdout).toBe('got 0\nthen 0\n');
});

withCriu('checkpoint and restore: a program goes on from its files', async () => {
  await create('--name', 'train', '--memory', '1GiB');
  const program = runThere('--allocation', 'train');
  await program.printed('got 0');
  const files = path.join(place.directory, 'files');
  const keyFile = path.join(place.directory, 'key');
  const inside = path.join(files, 'key');
  expect((await there('checkpoint', 'train', files, '--key-file', inside)).stderr).toContain(
    'it would lie beside the data',
  );
  expect((await there('checkpoint', 'train', files, '--key-file', keyFile)).stdout).toMatch(
    /^\w+ is in \S+\/files in [\d.]+ s: the CUDA calls of its programs wait until .* restored\n$/,
  );
  expect((await there('ls')).stdout).toMatch(/ train .* 100 MiB +100 MiB .* out, in a file$/m);
  expect((await there('resume', 'train')).stderr).toContain(`gpu-proxy restore ${files}`);
  expect((await there('restore', files)).stderr).toContain('the node does not have its key');
  expect((await there('restore', keyFile)).stderr).toContain('No allocation of this node is in');
  expect((await there('restore', files, '--key-file', inside)).stderr).toContain('no such file');
  expect((await there('restore', files, '--key-file', keyFile)).stdout).toMatch(
    /^\w+ is restored in [\d.]+ s\n$/,
  );
  const { stdout } = await there('checkpoint', 'train', files, '--encrypt');
  const [, key = ''] = /^The key, which is kept nowhere: ([0-9a-f]{64})$/m.exec(stdout) ?? [];
  writeFileSync(keyFile, key);
  await there('restore', files, '--key-file', keyFile);
  expect(await finish(program)).toBe('got 0\nthen 0\n');
});

withCriu('checkpoint: the key outlives a kill of the command', async () => {
  await create('--name', 'train', '--memory', '1GiB');
  const program = runThere('--allocation', 'train');
  await program.printed('got 0');
  const files = path.join(place.directory, 'files');
  const keyFile = path.join(place.directory, 'key');
  const words = ['checkpoint', 'train', files, '--state', state, '--key-file', keyFile];
  const command = new CommandUnderTest(place, words);
  await until(() => existsSync(files));
  command.process.kill('SIGKILL');
  await eventually(async () => expect((await there('ls')).stdout).toContain('out, in a file'));
  await there('restore', files, '--key-file', keyFile);
  expect(await finish(program)).toBe('got 0\nthen 0\n');
  rmSync(keyFile);
  const exists = await there('checkpoint', 'train', state, '--key-file', keyFile);
  expect([exists.status, existsSync(keyFile)]).toEqual([125, false]);
});

test('move: a program goes on, on another GPU', async () => {
  server.process.kill('SIGTERM');
  await server.end();
  await serve(['--movable', 'true'], { NVIDIA_VIRTUAL_SIMULATED_GPUS: '2' });
  await create('--name', 'train', '--memory', '1GiB', '--gpu', '0');
  const program = runThere('--allocation', 'train');
  await program.printed('got 0');
  expect((await there('move', 'train', '--gpu', '1')).stdout).toMatch(
    /^\w+ has moved to GPU 1 \(GPU-[-0-9a-f]+1\) in [\d.]+ s\n$/,
  );
  await there('suspend', 'train');
  expect((await there('move', 'train', '--gpu', '0')).stdout).toMatch(
    /^\w+ has moved to GPU 0 \(GPU-[-0-9a-f]+0\) in [\d.]+ s, and is still suspended\n$/,
  );
  program.process.stdin.end('\n');
  await there('resume', 'train');
  expect((await program.end()).stdout).toBe('got 0\nthen 0\n');
});

test('move: a program goes on where it was if it cannot move', async () => {
  await create('--name', 'train', '--memory', '1GiB');
  const { status, stderr } = await there('move', 'train', '--gpu', '0');
  expect([status, stderr]).toEqual([125, expect.stringContaining('it is there already')]);
  expect((await there('move', 'train', '--gpu', '1')).stderr).toContain('GPU 1 does not exist');
  expect((await there('move', 'train')).status).toBe(2);
});

test('create, ls, top, drain: the life of an allocation', async () => {
  const id = await create(
    '--name',
    'train',
    '--memory',
    '1GiB',
    '--share',
    '25',
    '--policy',
    'fixed',
    '--priority',
    '10',
  );
  expect((await there('ls')).stdout).toMatch(
    new RegExp(`^${id}  train  0  +1 GiB  0 bytes  +-  +25 %  fixed  +10  +0  resident$`, 'm'),
  );

  const program = runThere('--allocation', 'train');
  await program.printed('got 0');
  const listed = JSON.parse((await there('ls', '-o', 'json')).stdout) as NodeUseMessage;
  expect(listed.allocations).toEqual([
    expect.objectContaining({ id, memoryUsedBytes: 100 * 2 ** 20, sessions: [expect.anything()] }),
  ]);
  expect((await there('top', '-n', '2')).stdout).toMatch(
    /^train .* 25 % fixed .* 1 session\n.* 100 MiB .* python3.* \(process \d+\)$/m,
  );
  const moments = (await there('top', '-o', 'json', '-n', '2')).stdout.trim().split('\n');
  expect(moments.map((line) => (JSON.parse(line) as NodeUseMessage).allocations[0]?.id)).toEqual([
    id,
    id,
  ]);

  const refused = await there('delete', 'train');
  expect([refused.status, refused.stderr]).toEqual([
    125,
    expect.stringContaining(`Allocation ${id} has 1 session and is not deleted.`),
  ]);
  expect((await there('drain', 'train')).stdout).toBe(
    `${id} takes no new sessions; it has 1 session, and is deleted with the last one\n`,
  );
  expect(await finish(program)).toBe('got 0\nthen 0\n');
  await server.printed('"msg":"allocation removed"');
  expect(readdirSync(path.join(state, 'allocations'))).toEqual([]);
});

test('delete --force ends the programs', async () => {
  const id = await create('--memory', '1GiB');
  const program = runThere('--allocation', id);
  await program.printed('got 0');
  expect(await there('delete', id, '--force')).toEqual({
    status: 0,
    stdout: `${id} is deleted\n`,
    stderr: '',
  });
  expect(await finish(program)).toBe('got 0\nthen 46\n');
});

test('a request that does not fit is refused with the numbers', async () => {
  await create('--memory', '6GiB', '--share', '60', '--policy', 'fixed');
  expect(await there('create', '--memory', '3GiB')).toMatchObject({
    status: 125,
    stderr: expect.stringContaining('has 2 GiB left for a quota, but 3 GiB was requested'),
  });
  expect(
    await there('create', '--memory', '1GiB', '--share', '41', '--policy', 'fixed'),
  ).toMatchObject({
    status: 125,
    stderr: expect.stringContaining(
      'has 40 % of its time left for fixed shares, but 41 % was requested: 60 % is reserved.',
    ),
  });
});

test('run creates an allocation for its own duration', async () => {
  const program = runThere('--memory', '256MiB', '--share', '50', '--policy', 'fixed');
  await program.printed('got 0');
  const { allocations } = JSON.parse((await there('ls', '-o', 'json')).stdout) as NodeUseMessage;
  expect(allocations).toEqual([
    expect.objectContaining({
      memoryBytes: 256 * 2 ** 20,
      sharePercent: 50,
      policy: 'POLICY_FIXED',
    }),
  ]);
  expect(await finish(program)).toBe('got 0\nthen 0\n');
  expect((await there('ls')).stdout).toContain('no allocations');
});

test('the allocation of a killed run is removed with its programs', async () => {
  const program = runThere('--memory', '256MiB');
  await program.printed('got 0');
  program.process.kill('SIGKILL');
  await server.printed('"msg":"allocation is drained"');
  program.process.stdin.destroy();
  await server.printed('"msg":"allocation removed"');
  expect(readdirSync(path.join(state, 'allocations'))).toEqual([]);
});

test.each(['SIGKILL', 'SIGTERM'] as const)(
  '%s of the proxy: programs continue, and the next proxy finds them',
  async (signal) => {
    const id = await create('--memory', '1GiB');
    const program = runThere('--allocation', id);
    const inOwn = runThere('--memory', '1GiB');
    await Promise.all([program.printed('got 0'), inOwn.printed('got 0')]);
    server.process.kill(signal);
    await server.end();
    expect(await there('ls')).toMatchObject({
      status: 125,
      stderr: expect.stringContaining(`No gpu-proxy serves the state directory ${state}`),
    });
    await serve();
    await server.printed('"msg":"allocation found again"');
    const late = runThere('--allocation', id);
    await late.printed('got 0');
    for (const each of [program, late, inOwn]) expect(await finish(each)).toBe('got 0\nthen 0\n');
    // A session ends after its program.
    await eventually(async () => {
      const { stdout } = await there('ls', '-o', 'json');
      const { allocations } = JSON.parse(stdout) as NodeUseMessage;
      expect(allocations.map((allocation) => [allocation.id, allocation.memoryUsedBytes])).toEqual([
        [id, 0],
      ]);
      expect(readdirSync(path.join(state, 'allocations', id, 'sessions'))).toEqual([]);
    });
  },
);

test('a program that starts during a restart of the proxy waits for the next one', async () => {
  const id = await create('--memory', '1GiB');
  const socket = path.join(state, 'allocations', id, 'client', 'gpu.sock');
  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    server.process.kill(signal);
    await server.end();
    const [program, ...args] = HOLDING;
    const child = spawn(program as string, args, {
      env: clientEnvironment(locateInstallation(), socket),
    });
    await Promise.all([
      serve(),
      once(child.stdout, 'data').then(([data]) => expect(String(data)).toContain('got')),
    ]);
    child.stdin.end('\n');
    await once(child, 'close');
    expect(child.exitCode).toBe(0);
  }
});

test('a state directory has one proxy at a time', async () => {
  const second = await gpuProxy(place, 'serve', '--state', state, '--backend', 'simulated');
  expect([second.status, second.stderr]).toEqual([
    125,
    expect.stringContaining(
      `process ${server.process.pid}, already serves the state directory ${state}`,
    ),
  ]);
  expect(existsSync(path.join(state, 'lock'))).toBe(true);
});
