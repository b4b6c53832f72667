import { jest } from '@jest/globals';
import type { ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { pino } from 'pino';
import { PodEvents } from './pod-events.js';

const MINUTE = 60_000;

let names: Set<string>;
let events: PodEvents;

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate'] });
  names = new Set();
  const request = async ({ path }: { readonly path: string }) => names.add(path);
  const api = { request } as unknown as ApiServer;
  events = new PodEvents(api, 'node', pino({ enabled: false }));
});
afterEach(() => {
  jest.useRealTimers();
});

function warn(pod: string, subject: string): void {
  events.warn({ namespace: 'n', name: pod, uid: pod }, 'GpuAccessRefused', subject);
}

/** Causes 20 different warnings of each pod. */
function warnOften(pods: number, when: number): void {
  for (let pod = 0; pod < pods; pod++)
    for (let subject = 0; subject < 20; subject++) warn(`pod-${pod}`, `${when} ${subject}`);
}

test('a pod has at most ten new events a minute, whatever other pods have', () => {
  warnOften(2, 0);
  expect(names.size).toBe(20);
  jest.advanceTimersByTime(MINUTE - 1);
  warnOften(1, 1);
  expect(names.size).toBe(20);
  jest.advanceTimersByTime(1);
  warnOften(1, 2);
  expect(names.size).toBe(30);
});

test('warnings of a pod that has its events do not search all events', () => {
  for (let minute = 0; minute < 20; minute++) {
    warnOften(10, minute);
    jest.advanceTimersByTime(MINUTE);
  }
  const searches = jest.spyOn(Map.prototype, Symbol.iterator);
  warnOften(10, 20);
  expect(searches).toHaveBeenCalled();
  searches.mockClear();
  for (let subject = 0; subject < 10; subject++) warn('pod-0', `process ${subject}`);
  expect(searches).not.toHaveBeenCalled();
  searches.mockRestore();
  expect(names.size).toBe(21 * 100);
});
