import { type DeviceReading, makePage, parseDevices, type ShownAllocation } from './page.js';

const GPU = { memory: 8000, constants: { nvmlA: '0 01' }, readings: { 'nvmlB/2': '0 02' } };
const READING: DeviceReading = {
  system: { nvmlS: '0 ff' },
  gpus: [
    { uuid: 'GPU-a', ...GPU, processes: [{ pid: 70, memory: 300, busy: 0 }] },
    { uuid: 'GPU-b', ...GPU, processes: [{ pid: 71, memory: 400, busy: 0 }] },
  ],
};
const ALLOCATION: ShownAllocation = {
  gpus: ['GPU-A'],
  memory: 1000,
  used: 30,
  sessions: [
    { workerPid: 70, pid: 7, memory: 20 },
    { workerPid: 71, pid: 8, memory: 10 },
  ],
};

function page(allocation: Partial<ShownAllocation> = {}): string[] {
  const busyOf = (pid: number, gpu: string) => (gpu === 'GPU-a' ? pid : 0);
  return makePage(READING, { ...ALLOCATION, ...allocation }, busyOf)
    .trim()
    .split('\n');
}

test('a page has the quota, the use and the processes of an allocation on its GPU', () => {
  expect(page()).toEqual([
    'nvidia-virtual-gpus 1',
    'system nvmlS 0 ff',
    'gpu GPU-a',
    'memory 1000 30',
    'busy 100',
    'process 7 20 70',
    'process 8 10 71',
    'answer nvmlA 0 01',
    'answer nvmlB/2 0 02',
  ]);
});

test('without a quota, the memory is that of the GPU', () => {
  expect(page({ memory: 0 })).toContain('memory 8000 30');
});

test('with several GPUs, the driver tells where the memory and the processes are', () => {
  const lines = page({ gpus: [] }).filter((line) => /^(gpu|memory|process)/.test(line));
  expect(lines).toEqual([
    'gpu GPU-a',
    'memory 1000 300',
    'process 7 300 70',
    'gpu GPU-b',
    'memory 1000 400',
    'process 8 400 0',
  ]);
});

test('a GPU may appear as the one that its programs saw first', () => {
  const gpus = READING.gpus.map((gpu) => ({ ...gpu, constants: { nvmlA: `0 ${gpu.uuid}` } }));
  const moved = { ...ALLOCATION, gpus: ['GPU-b'], shownAs: 'GPU-a' };
  const lines = makePage({ ...READING, gpus }, moved, (pid, gpu) => (gpu === 'GPU-b' ? pid : 0));
  expect(lines.trim().split('\n')).toEqual([
    'nvidia-virtual-gpus 1',
    'system nvmlS 0 ff',
    'gpu GPU-a',
    'memory 1000 30',
    'busy 100',
    'process 7 20 70',
    'process 8 10 71',
    'answer nvmlA 0 GPU-a',
    'answer nvmlB/2 0 02',
  ]);
});

test('a GPU may be named by its index', () => {
  expect(page({ gpus: ['1'] })).toContain('gpu GPU-b');
  expect(page({ gpus: ['1'] })).not.toContain('gpu GPU-a');
});

test('parseDevices() refuses other lines', () => {
  expect(() => parseDevices('{"gpus":[]}')).toThrow('the worker answered');
  expect(() => parseDevices('x')).toThrow();
  expect(parseDevices('{"gpus":[],"system":{}}').gpus).toEqual([]);
});
