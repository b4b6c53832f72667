import type { AllocationSpecification, GpuRecord } from '@nvidia-virtual/ledger';
import { DEFAULT_LIMITS } from '@nvidia-virtual/node-state/specification';
import { Admission, type AdmissionSettings, type GpuWish } from './admission.js';

const GiB = 2 ** 30;
const SMALL: GpuRecord = {
  uuid: 'GPU-a',
  index: 0,
  name: 'G',
  memory: 10 * GiB,
  contextMemory: GiB,
  mode: 'exclusive',
};
const LARGE: GpuRecord = { ...SMALL, uuid: 'GPU-b', index: 1, memory: 20 * GiB };
const WISH: GpuWish = { gpus: [], memory: GiB, share: 100, policy: 'burst', mode: 'exclusive' };

function allocation(
  gpus: string[],
  memory: number,
  share = 100,
  policy: 'burst' | 'fixed' = 'burst',
): AllocationSpecification {
  const rest = {
    version: 1,
    id: '0',
    name: undefined,
    priority: 0,
    mode: 'exclusive',
    uid: undefined,
    createdAt: '',
    draining: false,
  } as const;
  return { ...rest, limits: DEFAULT_LIMITS, gpus, memory, share, policy };
}

function settings({ warm = 0, factor = 1, host = 0, lent = 0 }): AdmissionSettings {
  return {
    warmWorkers: () => warm,
    oversubscription: () => factor,
    hostMemory: () => host,
    hostLent: () => lent,
  };
}

function admission(warm = 0): Admission {
  return new Admission([SMALL, LARGE], settings({ warm }));
}

test('quotas, one context each and warm workers never exceed the memory', () => {
  const present = [allocation(['GPU-a'], 3 * GiB), allocation(['GPU-b'], GiB)];
  expect(admission().memoryLeft(SMALL, present)).toBe((10 - 3 - 1 - 1) * GiB);
  expect(admission(2).memoryLeft(SMALL, present)).toBe((10 - 3 - 1 - 1 - 2) * GiB);
  expect(admission(2).admit({ ...WISH, gpus: ['0'], memory: 3 * GiB }, present)).toEqual({
    gpus: ['GPU-a'],
    memory: 3 * GiB,
  });
  expect(() => admission(2).admit({ ...WISH, gpus: ['0'], memory: 3 * GiB + 1 }, present)).toThrow(
    'GPU 0 (GPU-a) has 3 GiB left for a quota, but 3 GiB was requested. Of its 10 GiB, 3 GiB ' +
      'are the quotas of 1 allocation, 2 GiB are for CUDA contexts including the new one, and ' +
      '2 GiB for warm workers or the MPS server.',
  );
});

test('the sum of fixed shares never exceeds 100', () => {
  const present = [allocation(['GPU-a'], 1, 60, 'fixed'), allocation(['GPU-a'], 1, 90, 'burst')];
  expect(admission().fixedShareLeft(SMALL, present)).toBe(40);
  const wish = { ...WISH, gpus: ['GPU-A'], policy: 'fixed' } as const;
  expect(admission().admit({ ...wish, share: 40 }, present).gpus).toEqual(['GPU-a']);
  expect(() => admission().admit({ ...wish, share: 41 }, present)).toThrow(
    'GPU 0 (GPU-a) has 40 % of its time left for fixed shares, but 41 % was requested: 60 % ' +
      'is reserved.',
  );
});

test('best fit: the fullest GPU with enough room is chosen', () => {
  const choose = (memory: number, ...present: AllocationSpecification[]) =>
    admission().admit({ ...WISH, memory }, present).gpus;
  expect(choose(GiB)).toEqual(['GPU-a']);
  expect(choose(10 * GiB)).toEqual(['GPU-b']);
  expect(choose(GiB, allocation(['GPU-b'], 18 * GiB))).toEqual(['GPU-a']);
  expect(choose(GiB, allocation(['GPU-b'], 15 * GiB))).toEqual(['GPU-b']);
  expect(() => choose(20 * GiB)).toThrow(
    'No GPU has 20 GiB in exclusive mode left: 0 (GPU-a) (exclusive) has 9 GiB and 100 %; 1 ' +
      '(GPU-b)',
  );
});

test('"all memory" means the same amount on each of several GPUs, and the maximum on one', () => {
  expect(admission().admit({ ...WISH, memory: 0 }, [])).toEqual({
    gpus: ['GPU-b'],
    memory: 19 * GiB,
  });
  expect(admission().admit({ ...WISH, memory: 0, gpus: ['0', '1', '0'] }, [])).toEqual({
    gpus: ['GPU-a', 'GPU-b'],
    memory: 9 * GiB,
  });
});

test('concurrent mode: a context for MPS, none for warm workers, one GPU', () => {
  const concurrent = [SMALL, LARGE].map((gpu) => ({ ...gpu, mode: 'concurrent' as const }));
  const admission = new Admission(concurrent, settings({}));
  expect(admission.memoryLeft(concurrent[0] as GpuRecord, [])).toBe((10 - 1 - 1) * GiB);
  expect(() => admission.checkWarmWorkers([allocation(['GPU-a'], 10 * GiB)])).not.toThrow();
  const wish = { ...WISH, mode: 'concurrent' } as const;
  expect(admission.admit({ ...wish, gpus: ['1'] }, []).gpus).toEqual(['GPU-b']);
  expect(() => admission.admit({ ...wish, gpus: ['0', '1'] }, [])).toThrow(
    'An allocation in concurrent mode has one GPU',
  );
});

describe('a move to another GPU', () => {
  const TWIN: GpuRecord = { ...SMALL, uuid: 'GPU-c', index: 2 };
  const gpus = new Admission([SMALL, LARGE, TWIN], settings({}));

  test('needs room for memory and share, and reserves it from then on', () => {
    const moves = { ...allocation(['GPU-a'], 5 * GiB), id: 'moves' };
    expect(gpus.admitMove(moves, '2', [])).toBe(TWIN);
    expect(gpus.memoryLeft(TWIN, [{ ...moves, moving: 'GPU-c' }])).toBe(3 * GiB);
    expect(gpus.memoryLeft(SMALL, [{ ...moves, moving: 'GPU-c' }])).toBe(3 * GiB);
    const move = (...others: AllocationSpecification[]) => gpus.admitMove(moves, 'GPU-c', others);
    expect(() => move(allocation(['GPU-c'], 4 * GiB))).toThrow('has 4 GiB left');
    const fixed = allocation(['GPU-c'], GiB, 60, 'fixed');
    expect(() => gpus.admitMove({ ...moves, policy: 'fixed' }, '2', [fixed])).toThrow('60 %');
  });

  test('is refused by GPUs that differ, in concurrent mode, and with several GPUs', () => {
    const one = allocation(['GPU-a'], GiB);
    expect(() => gpus.admitMove(one, '1', [])).toThrow('another model');
    expect(() => gpus.admitMove(one, '0', [])).toThrow('there already');
    expect(() => gpus.admitMove({ ...one, moving: 'GPU-c' }, '2', [])).toThrow('moving already');
    expect(() => gpus.admitMove(allocation(['GPU-a', 'GPU-c'], GiB), '2', [])).toThrow('2 GPUs');
    expect(() => gpus.admitMove(allocation([], GiB), '2', [])).toThrow('0 GPUs');
    const shared = new Admission([SMALL, { ...TWIN, mode: 'concurrent' }], settings({}));
    expect(() => shared.admitMove(one, '2', [])).toThrow('concurrent mode');
    expect(shared.otherPlaces(['GPU-a'])).toEqual([]);
    const over = new Admission([SMALL, TWIN], settings({ factor: 1.5, host: 100 * GiB }));
    expect(() => over.admitMove(one, '2', [])).toThrow('that GPU is oversubscribed');
    expect(gpus.otherPlaces(['GPU-a'])).toEqual(['GPU-c']);
    expect(gpus.otherPlaces(['GPU-a', 'GPU-c'])).toEqual([]);
  });
});

describe('an oversubscribed GPU', () => {
  const of = (factor: number, host: number, warm = 0) =>
    new Admission([SMALL, LARGE], settings({ factor, host, warm }));
  const GPU_0 = { ...WISH, gpus: ['0'] };

  test('the quotas and contexts are at most so many times its memory', () => {
    const present = [allocation(['GPU-a'], 6 * GiB)];
    expect(of(1.5, 100 * GiB).memoryLeft(SMALL, present)).toBe((15 - 6 - 2) * GiB);
    expect(of(1.5, 100 * GiB, 1).memoryLeft(SMALL, present)).toBe((15 - 6 - 3) * GiB);
    expect(of(1.5, 100 * GiB).memoryLeft(SMALL, [])).toBe(9 * GiB);
    expect(() => of(1.5, 100 * GiB).admit({ ...GPU_0, memory: 8 * GiB }, present)).toThrow(
      'GPU 0 (GPU-a) has 7 GiB left for a quota, but 8 GiB was requested. Of its 10 GiB, ' +
        'oversubscribed 1.5 times, 6 GiB are the quotas of 1 allocation, ',
    );
  });

  test('each quota fits by itself beside all contexts', () => {
    const present = [allocation(['GPU-a'], 8 * GiB), allocation(['GPU-a'], GiB)];
    expect(of(4, 100 * GiB).memoryLeft(SMALL, present)).toBe(0);
    expect(of(4, 100 * GiB).memoryLeft(SMALL, present.slice(1))).toBe(8 * GiB);
  });

  test('all quotas fit into host memory, unless they fit on the GPU', () => {
    const present = [allocation(['GPU-a'], 5 * GiB), allocation(['GPU-b'], 4 * GiB)];
    expect(of(2, 12 * GiB).memoryLeft(SMALL, present)).toBe(3 * GiB);
    expect(of(2, 14 * GiB).memoryLeft(SMALL, present)).toBe(5 * GiB);
    expect(() => of(2, 12 * GiB).admit({ ...GPU_0, memory: 4 * GiB }, present)).toThrow(
      'GPU 0 (GPU-a) has 3 GiB left for a quota, but 4 GiB was requested. It is oversubscribed, ' +
        'so the quotas of its allocations must fit into host memory, too: of 12 GiB by ' +
        'hostMemory, 9 GiB are promised, and suspended allocations of other GPUs have 0 bytes.',
    );
    expect(of(2, 0).admit({ ...GPU_0, memory: 3 * GiB }, present).memory).toBe(3 * GiB);
  });

  test('host memory of suspended allocations of other GPUs is not left', () => {
    const present = [allocation(['GPU-a'], 6 * GiB)];
    const lent = new Admission([SMALL, LARGE], settings({ factor: 2, host: 14 * GiB, lent: GiB }));
    expect(lent.memoryLeft(SMALL, present)).toBe((14 - 1 - 6) * GiB);
    expect(() => lent.admit({ ...GPU_0, memory: 8 * GiB }, present)).toThrow(
      'hostMemory, 6 GiB are promised, and suspended allocations of other GPUs have 1 GiB.',
    );
  });

  test('quotas need host memory if they do not fit on their GPU', () => {
    const present = [allocation(['GPU-a'], 5 * GiB), allocation(['GPU-b'], 12 * GiB)];
    expect(of(2, 0).hostNeeded(present)).toBe(0);
    expect(of(2, 0).hostNeeded([...present, allocation(['GPU-a'], 4 * GiB)])).toBe(9 * GiB);
    expect(of(1, 0).hostNeeded([...present, allocation(['GPU-a'], 4 * GiB)])).toBe(0);
  });

  test('an allocation of several GPUs is refused, because its memory cannot leave', () => {
    expect(() => of(2, 100 * GiB).admit({ ...WISH, gpus: ['0', '1'] }, [])).toThrow(
      'An allocation of several GPUs cannot use GPU 0 (GPU-a), because it is oversubscribed',
    );
  });
});
