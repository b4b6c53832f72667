import { existsSync, readFileSync } from 'node:fs';
import type { Expectation } from './expectations.js';

/** What became of one test. `started`: the process ended before the test did. */
export interface TestOutcome {
  readonly test: string;
  readonly outcome: 'started' | 'passed' | 'failed' | 'skipped';
  readonly why: string;
}

/** The verdict on the tests of a file. */
interface Verdict {
  readonly passed: number;
  readonly skipped: number;
  readonly failedAsExpected: number;
  /** Failures that are not expected, and expectations that nothing confirms. */
  readonly problems: readonly string[];
}

/** Reads a report of run.py: the last line about a test counts, but a failure stays. */
export function readReport(file: string): TestOutcome[] {
  const tests = new Map<string, TestOutcome>();
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : [];
  for (const line of lines) {
    const outcome = JSON.parse(line) as TestOutcome;
    if (tests.get(outcome.test)?.outcome !== 'failed') tests.set(outcome.test, outcome);
  }
  return [...tests.values()];
}

export function judge(outcomes: readonly TestOutcome[], expected: readonly Expectation[]): Verdict {
  const failed = outcomes.filter(({ outcome }) => outcome === 'failed' || outcome === 'started');
  const unexpected = failed.filter((outcome) => !expected.some((one) => covers(one, outcome)));
  const outdated = expected.filter(
    (one) => one.tests && !one.leftOut && !failed.some((outcome) => covers(one, outcome)),
  );
  return {
    passed: outcomes.filter(({ outcome }) => outcome === 'passed').length,
    skipped: outcomes.filter(({ outcome }) => outcome === 'skipped').length,
    failedAsExpected: failed.length - unexpected.length,
    problems: [
      ...unexpected.map(({ test, outcome, why }) =>
        outcome === 'started' ? `${test}: the process ended in it` : `${test}: ${why}`,
      ),
      ...outdated.map(({ tests }) => `${tests}: passes, so remove it from the expectations`),
    ],
  };
}

function covers({ tests, message }: Expectation, { test, why }: TestOutcome): boolean {
  return test.startsWith(tests ?? '') && why.includes(message ?? '');
}
