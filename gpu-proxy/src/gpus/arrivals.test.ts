import type { GpuRecord } from '@nvidia-virtual/ledger';
import { ProxyError } from '@nvidia-virtual/service/errors';
import { pino } from 'pino';
import { GpuArrivals } from './arrivals.js';

const gpu = (name: string): GpuRecord => ({
  uuid: `GPU-${name}`,
  index: 0,
  name: 'any',
  memory: 8,
  contextMemory: 1,
  mode: 'exclusive',
});
const listing = (...names: string[]) => new Set(names.map((name) => gpu(name).uuid));

let lines: string[] = [];
let arrived = 0;
let surveys = 0;
beforeEach(() => {
  lines = [];
  arrived = 0;
  surveys = 0;
});

interface Situation {
  /** UUIDs of the node's GPUs. */
  readonly has: readonly string[];
  readonly selection?: readonly string[];
  survey?(): string[];
}

function arrivals({ has, selection = [], survey = () => ['a', 'b'] }: Situation): GpuArrivals {
  return new GpuArrivals({
    gpus: has.map(gpu),
    selection,
    logger: pino({}, { write: (line: string) => lines.push(line) }),
    survey: async () => {
      surveys++;
      return survey().map(gpu);
    },
    arrived: () => arrived++,
  });
}

test.each<[string, Situation, string[], number]>([
  ['nothing new', { has: ['a'] }, ['a'], 0],
  ['a new GPU', { has: ['a'] }, ['a', 'b'], 1],
  ['a GPU outside of the selection', { has: ['a'], selection: ['GPU-a'] }, ['a', 'b'], 0],
  ['a selected GPU', { has: ['a'], selection: ['GPU-a', 'GPU-b'] }, ['a', 'b', 'c'], 1],
  [
    'a selected GPU although another has failed',
    { has: ['a'], selection: ['GPU-a', 'GPU-b'] },
    ['b', 'c'],
    1,
  ],
  [
    'indices that mean other GPUs because one has failed',
    { has: ['a'], selection: ['0'] },
    ['b', 'c'],
    0,
  ],
  [
    'indices that meant other GPUs because one had failed',
    { has: ['b'], selection: ['0'] },
    ['a', 'b'],
    1,
  ],
])('whether the node restarts: %s', async (_, situation, listed, expected) => {
  await arrivals(situation).look(listing(...listed));
  expect([arrived, surveys]).toEqual([expected, expected]);
});

test('a node that cannot start with a GPU runs without it and retries', async () => {
  let works = false;
  const survey = () => {
    if (!works) throw new ProxyError('INVENTORY_FAILED', { reason: 'no context' });
    return ['a', 'b'];
  };
  const watching = arrivals({ has: ['a'], survey });
  const look = async (times: number) => {
    for (let count = 0; count < times; count++) await watching.look(listing('a', 'b'));
  };
  await look(7);
  expect([surveys, arrived]).toEqual([3, 0]);
  expect(lines.join('')).toContain(
    'GPU GPU-b appeared after gpu-proxy started, but gpu-proxy cannot restart with it yet: ',
  );
  works = true;
  await look(8);
  expect([surveys, arrived]).toEqual([4, 1]);
  expect(lines.join('')).toContain('gpu-proxy exits, so that its restart serves this GPU too');
});

test('a GPU that disappears before the second check causes no restart', async () => {
  await arrivals({ has: ['a'], survey: () => ['a'] }).look(listing('a', 'b'));
  expect(arrived).toBe(0);
  expect(lines.join('')).toContain('It is gone again.');
});
