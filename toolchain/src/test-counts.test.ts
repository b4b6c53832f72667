import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import {
  add,
  closingLine,
  honest,
  NONE,
  readClosingLine,
  readJestReport,
  readJunitReport,
} from './test-counts.js';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(path.join(tmpdir(), 'counts-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

function file(text: string): string {
  const name = path.join(directory, 'report');
  writeFileSync(name, text);
  return name;
}

test('readJestReport() counts a suite that could not run as failed', () => {
  const report = {
    numPassedTests: 5,
    numFailedTests: 1,
    numPendingTests: 2,
    numTodoTests: 1,
    numRuntimeErrorTestSuites: 1,
  };
  expect(readJestReport(file(JSON.stringify(report)))).toEqual({
    passed: 5,
    failed: 2,
    skipped: 3,
  });
});

test('readJunitReport() reads the totals of ctest', () => {
  const report =
    '<?xml version="1.0"?>\n<testsuite ' +
    'name="x"\n\ttests="7"\n\tfailures="2"\n\tdisabled="0"\n\tskipped="1"\n\thostname="">';
  expect(readJunitReport(file(report))).toEqual({ passed: 4, failed: 2, skipped: 1 });
});

test('readClosingLine() reads the last complete line of counts', () => {
  expect(
    readClosingLine('1 passed, 1 failed\nconformance: 3 passed, 0 failed, 2 skipped\nbye'),
  ).toEqual({
    passed: 3,
    failed: 0,
    skipped: 2,
  });
  expect(readClosingLine('we saw 3 passed, 0 failed today')).toEqual(NONE);
});

test('a missing report is a failure', () => {
  const missing = path.join(directory, 'missing');
  expect(honest(readJestReport(missing), 0).failed).toBe(1);
  expect(honest(readJunitReport(missing), 0).failed).toBe(1);
  expect(honest(readClosingLine(''), 0).failed).toBe(1);
});

test('honest() adds a failure only for a runner that failed without counting one', () => {
  const passed = { passed: 3, failed: 0, skipped: 0 };
  expect(honest(passed, 0)).toEqual(passed);
  expect(honest(passed, 1).failed).toBe(1);
  expect(honest({ ...passed, failed: 2 }, 1).failed).toBe(2);
});

test('closingLine() prints skipped tests if there are any', () => {
  expect(
    closingLine(add({ passed: 1, failed: 2, skipped: 0 }, { passed: 3, failed: 0, skipped: 0 })),
  ).toBe('4 passed, 2 failed');
  expect(closingLine({ passed: 1, failed: 0, skipped: 4 })).toBe('1 passed, 0 failed, 4 skipped');
});
