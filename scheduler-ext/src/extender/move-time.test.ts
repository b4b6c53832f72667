import { jest } from '@jest/globals';
import type { Assignment } from '@nvidia-virtual/kube-common/assignment';
import { podOf } from '../testing/nodes.js';
import { MoveTime } from './move-time.js';

const LIMIT = 600;

let now: number;
let time: MoveTime;

beforeEach(() => {
  now = 0;
  jest.spyOn(performance, 'now').mockImplementation(() => now);
  time = new MoveTime(LIMIT);
});
afterEach(() => jest.restoreAllMocks());

/** The pod during its move of that number; undefined: it stays. */
function podIn(move: number | undefined) {
  const moving = move === undefined ? {} : { former: 'GPU-a', move };
  const assignment: Assignment = { version: 1, containers: {}, ...moving };
  return podOf('p', { assignment });
}

/** After that long, during which the pod was in the move. */
function pass(milliseconds: number, move?: number): void {
  time.note(podIn(move));
  now += milliseconds;
  time.note(podIn(move));
}

test('a move is overdue after its limit, however often the pod exchanges its GPUs', () => {
  for (let move = 1; move <= 6; move++) {
    expect(time.isOverdue('p')).toBe(false);
    pass(LIMIT / 6, move);
  }
  pass(1, 7);
  expect(time.isOverdue('p')).toBe(true);
});

test('moves that are begun one after another count together', () => {
  for (const move of [1, 3]) {
    pass(LIMIT / 3, move);
    pass(1);
  }
  expect(time.rests(podIn(undefined))).toBe(true);
  pass(LIMIT / 3, 5);
  pass(1, 5);
  expect(time.isOverdue('p')).toBe(true);
});

test('a pod that goes back has as long again, and no wish until it is there', () => {
  pass(LIMIT + 1, 1);
  expect(time.isOverdue('p')).toBe(true);
  time.noteOverdue(podIn(1));
  time.note(podIn(1));
  expect(time.isOverdue('p')).toBe(true);
  pass(LIMIT - 1, 2);
  expect(time.isOverdue('p')).toBe(false);
  expect(time.rests(podIn(2))).toBe(true);
  pass(2, 2);
  expect(time.isOverdue('p')).toBe(true);
});

test('a pod rests three times as long as the limit at most', () => {
  pass(100 * LIMIT, 1);
  pass(3 * LIMIT - 6);
  expect(time.rests(podIn(undefined))).toBe(true);
  pass(6);
  expect(time.rests(podIn(undefined))).toBe(false);
});

test('a pod that moved fast moves again at once', () => {
  pass(LIMIT / 3, 1);
  expect(time.rests(podIn(undefined))).toBe(false);
});

test('a pod that is gone is forgotten', () => {
  pass(LIMIT, 1);
  time.retain(() => false);
  expect(time.rests(podIn(undefined))).toBe(false);
});
