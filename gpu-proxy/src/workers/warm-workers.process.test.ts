import { readdirSync } from 'node:fs';
import type { GpuRecord } from '@nvidia-virtual/ledger';
import { eventually } from '@nvidia-virtual/service/testing/eventually';
import { pino } from 'pino';
import { Addon } from '../host/addon.js';
import { locateInstallation } from '../host/installation.js';
import { DIRECT } from '../host/launcher.js';
import { WarmWorkers } from './warm-workers.js';

const GPU: GpuRecord = {
  uuid: 'GPU-0',
  index: 0,
  name: 'g',
  memory: 1,
  contextMemory: 0,
  mode: 'exclusive',
};

/** Those that begin, with a driver that there is not; what was said of them. */
function startInVain(executable: string): {
  readonly workers: WarmWorkers;
  readonly said: string[];
} {
  const said: string[] = [];
  const logger = pino({}, { write: (line: string) => void said.push(JSON.parse(line).msg) });
  const addon = new Addon(locateInstallation().addon);
  const workers = new WarmWorkers(GPU, {
    executable,
    backend: { kind: 'real', driver: '/nonexistent/libcuda.so.1' },
    addon,
    launcher: DIRECT,
    logger,
  });
  workers.wanted = 3;
  return { workers, said };
}

const openFiles = () => readdirSync('/proc/self/fd').length;

test('those that end leave nothing open, and are tried again later', async () => {
  const before = openFiles();
  const { workers, said } = startInVain(locateInstallation().worker);
  // three at once, and one a second later
  await eventually(() => expect(said.length).toBeGreaterThanOrEqual(4));
  expect(said[0]).toMatch(/^a warm worker ended: .*\/nonexistent\/libcuda\.so\.1/);
  workers.end();
  await eventually(() => expect(openFiles()).toBeLessThanOrEqual(before));
});

test.each([
  ['', '/nonexistent/worker', 4, /^a warm worker ended: spawn \/nonexistent\/worker ENOENT/],
  // A word with a zero in it is what spawn throws at.
  [', not even as far as a failure', 'a\0b', 2, /^a warm worker does not start: .*null bytes/],
])('so do those that cannot even start%s', async (_, executable, times, sentence) => {
  const before = openFiles();
  const { workers, said } = startInVain(executable);
  await eventually(() => expect(said.length).toBeGreaterThanOrEqual(times));
  expect(said[0]).toMatch(sentence);
  workers.end();
  await eventually(() => expect(openFiles()).toBeLessThanOrEqual(before));
});
