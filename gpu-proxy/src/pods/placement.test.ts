import type { GrantRequest } from './container-request.js';
import { place } from './placement.js';

const GIB = 2 ** 30;
const GPU = {
  index: 0,
  name: 'any',
  contextMemory: GIB / 2,
  mode: 'exclusive',
} as const;
/** With slots of 2 GiB: 55 and 9. */
const LARGE = { ...GPU, uuid: 'GPU-large', memory: 138 * GIB };
const SMALL = { ...GPU, uuid: 'GPU-small', memory: 24 * GIB };
const NODE = {
  gpus: [LARGE, SMALL],
  slotsPerGpu: 10,
  slotMemory: (2 * GIB) as number | undefined,
  warmWorkers: () => 0,
  oversubscription: () => 1,
  free: () => 10,
  unhealthy: () => undefined,
  admit: ({ gpus, memory }: { readonly gpus: readonly string[]; readonly memory: number }) => ({
    gpus,
    memory,
  }),
};

function requestFor(more: Partial<GrantRequest>): GrantRequest {
  const open = {
    policy: undefined,
    mode: undefined,
    latency: undefined,
    trace: undefined,
    memory: undefined,
    cores: undefined,
    assigned: undefined,
  };
  const nothing = { init: false, priority: 0, gpuTypes: [], gpuUuids: [] };
  return { container: 'main', slots: 4, gpus: 1, ...nothing, ...open, ...more };
}

const on = (gpu: string, slots: number, taken?: number) => [
  { gpu, slots, ...(taken !== undefined && { taken }) },
];

test.each([
  ['a large GPU', on('GPU-large', 4, 11)],
  ['a small GPU', on('GPU-small', 4)],
])('8 GiB and a fifth of the time are just that on %s', (_, assigned) => {
  const request = requestFor({ memory: 8 * GIB, cores: 20, assigned });
  expect(place(request, NODE)).toMatchObject({ memory: 8 * GIB, share: 20 });
});

test('memory that does not divide evenly is an exact quota', () => {
  const assigned = on('GPU-large', 4);
  expect(place(requestFor({ memory: 7 * GIB, assigned }), NODE).memory).toBe(7 * GIB);
});

test('slots alone hold the same memory on each GPU, and their part of its time', () => {
  const of = (gpu: string) => place(requestFor({ assigned: on(gpu, 4) }), NODE);
  expect(of('GPU-large')).toMatchObject({ memory: 8 * GIB, share: 7 });
  expect(of('GPU-small')).toMatchObject({ memory: 8 * GIB, share: 44 });
});

test('only the scheduler gives time beyond the slots', () => {
  expect(place(requestFor({ cores: 90, gpuUuids: ['GPU-large'] }), NODE).share).toBe(7);
  expect(place(requestFor({ cores: 90, assigned: on('GPU-large', 4, 11) }), NODE).share).toBe(20);
});

test.each([
  [['!large'], [], 'GPU-small'],
  [['!large', '! SMALL'], [], undefined],
  [[], ['!gpu-LARGE'], 'GPU-small'],
  [[], ['gpu-LARGE'], 'GPU-large'],
  [['large', '!large'], [], undefined],
  [['LARGE', '!small'], [], 'GPU-large'],
])('without the scheduler, types %j and UUIDs %j choose %s', (gpuTypes, gpuUuids, expected) => {
  const gpus = [LARGE, SMALL].map((gpu) => ({ ...gpu, name: gpu.uuid.slice('GPU-'.length) }));
  const chosen = () => place(requestFor({ gpuTypes, gpuUuids }), { ...NODE, gpus }).gpus;
  if (expected === undefined) expect(chosen).toThrow('is not of the type');
  else expect(chosen()).toEqual([expected]);
});

test('an allocation on several GPUs gets what the smaller part allows', () => {
  const assigned = [...on('GPU-large', 4), ...on('GPU-small', 4)];
  const request = requestFor({ slots: 8, gpus: 2, assigned });
  expect(place(request, NODE)).toMatchObject({ memory: 8 * GIB, share: 7 });
});

test('equal parts: time beyond the slots is not given', () => {
  const request = requestFor({ cores: 90, assigned: on('GPU-large', 4) });
  const equal = { ...NODE, slotMemory: undefined };
  expect(place(request, equal)).toMatchObject({ memory: 4 * Math.floor(13.3 * GIB), share: 40 });
});
