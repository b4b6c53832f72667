import { SPECIFICATION } from '../testing/node-snapshot.js';
import { checkSlots, slotMemory, slotsTaken } from './slots.js';

const GiB = 2 ** 30;
const GPU = {
  uuid: 'GPU-1',
  index: 0,
  name: 'any',
  memory: 80 * GiB,
  contextMemory: GiB / 2,
  mode: 'exclusive',
} as const;
const settings = (slotsPerGpu: number, warm = 0) => ({ slotsPerGpu, warmWorkers: () => warm });

test('slotMemory() is what a context per slot and the warm workers leave', () => {
  expect(slotMemory(GPU, settings(10))).toBe(7.5 * GiB);
  expect(slotMemory(GPU, settings(10, 10))).toBe(7 * GiB);
  expect(slotMemory({ ...GPU, memory: 4 * GiB }, settings(10))).toBe(0);
});

test('settings that leave too little memory are refused with the numbers', () => {
  expect(() => checkSlots([GPU], settings(100))).not.toThrow();
  expect(() => checkSlots([{ ...GPU, memory: 16 * GiB }], settings(30, 1))).toThrow(
    'GPU 0 (GPU-1) has 16 GiB. Each of its 30 slots would hold 17.1 MiB, but a program needs ' +
      'at least 64 MiB',
  );
});

test('slotsTaken() counts slots once that two containers of a pod use one after the other', () => {
  const allocation = (slots: string[], gpus = ['GPU-1']) => ({ ...SPECIFICATION, gpus, slots });
  const two = [allocation(['a', 'b']), allocation(['a', 'b'])];
  expect(
    slotsTaken(GPU, [...two, allocation(['c']), allocation(['d'], ['GPU-2'])], new Map()),
  ).toBe(3);
  expect(slotsTaken(GPU, [allocation(['a', 'b', 'c', 'd'], ['GPU-1', 'GPU-2'])], new Map())).toBe(
    2,
  );
});

test('slotsTaken() counts slots assigned to a pod once, whether used or not', () => {
  const ownedBy = (podUid: string) => ({
    owner: { namespace: 'default', pod: podUid, podUid, container: 'main' },
  });
  const assigned = new Map([
    ['uses-some', new Map([['GPU-1', 4]])],
    ['elsewhere', new Map([['GPU-2', 3]])],
    ['starts', new Map([['GPU-1', 2]])],
  ]);
  const using = { ...SPECIFICATION, gpus: ['GPU-1'], slots: ['a', 'b'], ...ownedBy('uses-some') };
  const foreign = { ...SPECIFICATION, gpus: ['GPU-1'], slots: ['c'], ...ownedBy('foreign') };
  expect(slotsTaken(GPU, [using, foreign], assigned)).toBe(7);
});
