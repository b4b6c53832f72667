import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { callsOf, supportedCalls } from './coverage.js';

const ROWS = `
| Function | How | By hand |
|---|---|---|
| cuInit | answered in the program | client |
| cuMemAlloc_v2 | answered by the worker | worker |
| cuLaunchKernel (_ptsz) | sent on, returns at once | client, frame |
| cuArrayCreate | always CUDA_ERROR_INVALID_CONTEXT, as the driver |  |
| cuOther | missing |  |
| cuGL | refused: a reason |  |
`;

test('supportedCalls() has the calls that work, and where', () => {
  expect(supportedCalls(ROWS)).toEqual([
    { name: 'cuInit', travels: false },
    { name: 'cuMemAlloc_v2', travels: true },
    { name: 'cuLaunchKernel', travels: true },
  ]);
});

test('callsOf() has the calls that succeeded, and none without a trace', () => {
  const directory = mkdtempSync(path.join(tmpdir(), 'coverage-'));
  const file = path.join(directory, 'trace.json');
  const event = (name: string, cat: string, result: string) => ({ name, cat, args: { result } });
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
