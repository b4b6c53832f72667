import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { callsOf, coverage, supportedCalls } from './coverage.js';

const ROWS = `
| Function | How | By hand |
|---|---|---|
| cuInit | answered in the program | client |
| cuMemAlloc_v2 | answered by the worker | worker |
| cuLaunchKernel (_ptsz) | sent on, returns at once | client, frame |
| cuArrayCreate | always CUDA_ERROR_INVALID_CONTEXT, as the driver |  |
| cuTensor | answered by the worker (real GPU only) | |
| cuWide | answered by the worker (real GPU of compute capability 10.0 only) | |
| cuOther | missing |  |
| cuGL | refused: a reason |  |
`;

test('supportedCalls() has the calls that work, and on which GPU', () => {
  expect(supportedCalls(ROWS)).toEqual([
    { name: 'cuInit', on: 'all' },
    { name: 'cuMemAlloc_v2', on: 'all' },
    { name: 'cuLaunchKernel', on: 'all' },
    { name: 'cuTensor', on: 'real' },
    { name: 'cuWide', on: 'newer' },
  ]);
});

test('coverage() expects what only a real GPU has on a real GPU only', () => {
  const made = new Set(['cuInit', 'cuLaunchKernel']);
  const simulated = { supported: 3, notMade: ['cuMemAlloc_v2'], elsewhere: ['cuTensor', 'cuWide'] };
  expect(coverage(made, 'simulated', ROWS)).toEqual(simulated);
  const real = { supported: 4, notMade: ['cuMemAlloc_v2', 'cuTensor'], elsewhere: ['cuWide'] };
  expect(coverage(made, 'real', ROWS)).toEqual(real);
});

test('callsOf() has the calls that succeeded, and none without a trace', () => {
  const directory = mkdtempSync(path.join(tmpdir(), 'coverage-'));
  const file = path.join(directory, 'trace.json');
  const event = (name: string, cat: string, result: string) => ({
    name,
    cat,
    args: { return: result, result: 'an argument' },
  });
  const events = [
    event('cuInit', 'call', 'CUDA_SUCCESS'),
    event('cuMemFree_v2', 'call', 'CUDA_ERROR_INVALID_VALUE'),
    event('spin', 'kernel', 'CUDA_SUCCESS'),
  ];
  writeFileSync(file, JSON.stringify(events));
  expect(callsOf(file)).toEqual(['cuInit']);
  rmSync(directory, { recursive: true });
  expect(callsOf(file)).toEqual([]);
});
