import { expect, test } from '@jest/globals';
import { judge, type TestOutcome } from './outcomes.js';

const outcome = (name: string, result: TestOutcome['outcome']): TestOutcome => ({
  test: `file.py::${name}`,
  outcome: result,
  why: 'AssertionError',
});

test('a failure counts as expected if the beginning of its name is listed', () => {
  const outcomes = [outcome('A::one', 'failed'), outcome('A::two', 'passed')];
  const verdict = judge(outcomes, [{ tests: 'file.py::A::', why: 'machine code' }]);
  expect(verdict).toEqual({ passed: 1, skipped: 0, failedAsExpected: 1, problems: [] });
});

test('a failure that is not listed is a problem, and so is a process that ended in a test', () => {
  const { problems } = judge([outcome('one', 'failed'), outcome('two', 'started')], []);
  expect(problems).toEqual([
    'file.py::one: AssertionError',
    'file.py::two: the process ended in it',
  ]);
});

test('an expectation that no failure confirms is a problem', () => {
  const { problems } = judge([outcome('one', 'passed')], [{ tests: 'file.py::one', why: 'bug' }]);
  expect(problems).toEqual(['file.py::one: passes, so remove it from the expectations']);
});

test('an expectation without a name covers every test with the message', () => {
  const outcomes = [outcome('one', 'failed')];
  expect(judge(outcomes, [{ message: 'Assertion', why: 'x' }]).failedAsExpected).toBe(1);
  expect(judge(outcomes, [{ message: 'NO_BINARY', why: 'x' }]).problems).toHaveLength(1);
});
