import { readFileSync } from 'node:fs';

export interface TestCounts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export const NONE: TestCounts = { passed: 0, failed: 0, skipped: 0 };

export function add(a: TestCounts, b: TestCounts): TestCounts {
  return {
    passed: a.passed + b.passed,
    failed: a.failed + b.failed,
    skipped: a.skipped + b.skipped,
  };
}

/**
 * Adds one failure if a runner failed without counting one, because it crashed or ran nothing.
 */
export function honest(counts: TestCounts, exitStatus: number): TestCounts {
  const unexplained = exitStatus !== 0 && counts.failed === 0;
  const ranNothing = counts.passed + counts.failed + counts.skipped === 0;
  return unexplained || ranNothing ? { ...counts, failed: counts.failed + 1 } : counts;
}

export function closingLine(counts: TestCounts): string {
  const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : '';
  return `${counts.passed} passed, ${counts.failed} failed${skipped}`;
}

/**
 * Reads the report of `jest --json --outputFile`. A suite that could not run counts as one failure.
 */
export function readJestReport(file: string): TestCounts {
  const report = readJson(file);
  const skipped = number(report, 'numPendingTests') + number(report, 'numTodoTests');
  return {
    passed: number(report, 'numPassedTests'),
    failed: number(report, 'numFailedTests') + number(report, 'numRuntimeErrorTestSuites'),
    skipped,
  };
}

/** Reads the report of `ctest --output-junit`. */
export function readJunitReport(file: string): TestCounts {
  const suite = /<testsuite\b[^>]*>/.exec(readIfThere(file))?.[0] ?? '';
  const attribute = (name: string) =>
    Number(new RegExp(`\\b${name}="(\\d+)"`).exec(suite)?.[1] ?? 0);
  const skipped = attribute('skipped') + attribute('disabled');
  return {
    passed: attribute('tests') - attribute('failures') - skipped,
    failed: attribute('failures'),
    skipped,
  };
}

/** Reads the last line in the format of closingLine(). */
export function readClosingLine(output: string): TestCounts {
  const lines = [
    ...output.matchAll(/^(?:\w+: )?(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$/gm),
  ];
  const last = lines.at(-1);
  return last
    ? { passed: Number(last[1]), failed: Number(last[2]), skipped: Number(last[3] ?? 0) }
    : NONE;
}

function readJson(file: string): Record<string, unknown> {
  const text = readIfThere(file);
  return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>);
}

function number(report: Record<string, unknown>, key: string): number {
  const value = report[key];
  return typeof value === 'number' ? value : 0;
}

function readIfThere(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
