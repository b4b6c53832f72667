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

/** Warm workers with a missing driver, and their log lines. */
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

test('warm workers that exit leave no descriptors open, and are restarted later', async () => {
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
  // spawn() throws on an argument with a null byte.
  [', because spawn() throws', 'a\0b', 2, /^a warm worker does not start: .*null bytes/],
])(
  'warm workers that cannot start leave no descriptors open%s',
  async (_, executable, times, sentence) => {
    const before = openFiles();
    const { workers, said } = startInVain(executable);
    await eventually(() => expect(said.length).toBeGreaterThanOrEqual(times));
    expect(said[0]).toMatch(sentence);
    workers.end();
    await eventually(() => expect(openFiles()).toBeLessThanOrEqual(before));
  },
);
