import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { identifyProcess, isAlive } from './process-table.js';
import { until } from './testing/eventually.js';

test('isAlive() is true for this process and names its program', () => {
  const identity = identifyProcess(process.pid);
  expect(identity.program).toBe(process.execPath);
  expect(isAlive(identity)).toBe(true);
});

test('isAlive() is false for an exited process and for a reused pid', async () => {
  const child = spawn('sleep', ['1000']);
  const identity = identifyProcess(child.pid as number);
  expect(isAlive(identity)).toBe(true);
  expect(isAlive({ ...identity, startTime: '1' })).toBe(false);
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect(isAlive(identity)).toBe(false);
});

test('isAlive() is false for a zombie', async () => {
  // The shell's child exits at once. sleep replaces the shell and never reaps the child.
  const parent = spawn('sh', ['-c', 'true & echo $!; exec sleep 1000'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [line] = (await once(parent.stdout, 'data')) as [Buffer];
  const zombie = identifyProcess(Number(line.toString()));
  await until(() => !isAlive(zombie));
  expect(isAlive(zombie)).toBe(false);
  parent.kill('SIGKILL');
  await once(parent, 'exit');
});
