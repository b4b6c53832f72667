import { Admission } from '../allocations/admission.js';
import { SPECIFICATION } from '../testing/node-snapshot.js';
import { checkHostMemory, checkSlots, slotsOf, slotsTaken } from './slots.js';

const GiB = 2 ** 30;
const GPU = {
  uuid: 'GPU-1',
  index: 0,
  name: 'any',
  memory: 80 * GiB,
  contextMemory: GiB / 2,
  mode: 'exclusive',
} as const;
const settings = (slotsPerGpu: number, warm = 0, slotMemory?: number, factor = 1) => ({
  ...{ slotsPerGpu, slotMemory },
  warmWorkers: () => warm,
  oversubscription: () => factor,
});

test('equal slots have what a context per slot and the warm workers leave', () => {
  expect(slotsOf(GPU, settings(10))).toEqual({ count: 10, memory: 7.5 * GiB });
  expect(slotsOf(GPU, settings(10, 10)).memory).toBe(7 * GiB);
  expect(slotsOf({ ...GPU, memory: 4 * GiB }, settings(10)).memory).toBe(0);
});

test.each([
  ['as many as fit, each with a context', 80, 0, 32],
  ['as many as fit beside the warm workers', 80, 5, 31],
  ['the same size on a smaller GPU', 24, 0, 9],
  ['at most 100', 1000, 0, 100],
  ['none on a GPU that is smaller than a slot', 2, 0, 0],
  ['none on a GPU that the warm workers fill', 4, 10, 0],
])('slots of a fixed size are %s', (_, memory, warm, count) => {
  const gpu = { ...GPU, memory: memory * GiB };
  expect(slotsOf(gpu, settings(10, warm, 2 * GiB))).toEqual({ count, memory: 2 * GiB });
});

test.each([
  [
    'more equal slots of the same size',
    1.5,
    0,
    undefined,
    { count: 15, memory: 7.5 * GiB, most: 10 },
  ],
  [
    'smaller equal slots if more contexts need the room',
    3,
    0,
    undefined,
    { count: 30, memory: Math.floor(6.95 * GiB), most: 10 },
  ],
  ['more slots of a fixed size', 1.25, 0, 2 * GiB, { count: 40, memory: 2 * GiB, most: 32 }],
  [
    'more than 100 slots if it has 100 by itself',
    1.25,
    0,
    0.3 * GiB,
    { count: 125, memory: 0.3 * GiB, most: 100 },
  ],
  ['beside warm workers', 1.5, 10, undefined, { count: 15, memory: 7 * GiB, most: 10 }],
])('an oversubscribed GPU has %s', (_, factor, warm, size, expected) => {
  expect(slotsOf(GPU, settings(10, warm, size, factor))).toEqual(expected);
  expect(slotsOf({ ...GPU, mode: 'concurrent' }, settings(10, 0, size, factor)).most).toBe(
    undefined,
  );
});

const FACTORS = [1.1, 1.5, 2, 3, 4];
test.each(FACTORS.flatMap((factor) => [1, 3, 7, 10, 16].map((slots) => [factor, slots] as const)))(
  '%d times oversubscribed, each division of %d slots is admitted',
  (factor, slots) => {
    const given = settings(slots, 2, undefined, factor);
    const { count, memory, most = 0 } = slotsOf(GPU, given);
    const admission = new Admission([GPU], {
      ...given,
      hostLent: () => 0,
      hostMemory: () => count * memory,
    });
    const present = (parts: readonly number[]) =>
      parts.map((part) => ({
        ...SPECIFICATION,
        gpus: [GPU.uuid],
        share: 1,
        memory: part * memory,
      }));
    const refused = Array.from({ length: most }, (_, index) => index + 1)
      .flatMap((largest) => divisionsOf(count, largest))
      .filter((parts) =>
        parts.some(
          (part, index) =>
            admission.memoryLeft(GPU, present(parts.slice(0, index))) < part * memory,
        ),
      );
    expect([most > 0, refused]).toEqual([true, []]);
  },
);

/** As many containers with `largest` slots as there can be, and one; all others have one slot. */
function divisionsOf(count: number, largest: number): number[][] {
  const many = Array<number>(Math.floor(count / largest)).fill(largest);
  const rest = Array<number>(count - largest * many.length).fill(1);
  return [
    [...many, ...rest],
    [largest, ...Array<number>(count - largest).fill(1)],
  ];
}

test('the memory of all slots of an oversubscribed GPU fits into host memory', () => {
  const over = settings(10, 0, undefined, 1.5);
  expect(() => checkHostMemory([GPU], over, 15 * 7.5 * GiB)).not.toThrow();
  expect(() => checkHostMemory([GPU], over, 15 * 7.5 * GiB - 1)).toThrow(
    'Oversubscription requires host memory of 112.5 GiB, for the memory of all slots, but',
  );
  expect(() => checkHostMemory([GPU], settings(10), 0)).not.toThrow();
});

test('oversubscription that leaves contexts no room is refused', () => {
  const small = { ...GPU, memory: 16 * GiB };
  expect(() => checkSlots([small], settings(20, 0, undefined, 2))).toThrow(
    'GPU 0 (GPU-1) has 40 slots by oversubscription. Each may need a context of 512 MiB, and of',
  );
});

test('settings that leave too little memory are refused with the numbers', () => {
  expect(() => checkSlots([GPU], settings(100))).not.toThrow();
  expect(() => checkSlots([{ ...GPU, memory: 16 * GiB }], settings(30, 1))).toThrow(
    'GPU 0 (GPU-1) has 16 GiB. Each of its 30 slots would hold 17.1 MiB, but a program needs ' +
      'at least 64 MiB',
  );
  expect(() => checkSlots([GPU], settings(10, 0, GiB / 32))).toThrow('raise slotMemory');
  expect(() => checkSlots([{ ...GPU, memory: GiB }], settings(10, 0, 2 * GiB))).not.toThrow();
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
