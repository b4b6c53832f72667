import { jest } from '@jest/globals';
import { Succession } from './succession.js';

/** Of `performance.now()`, in milliseconds. */
let now: number;
let leader: string | undefined;
let reads: number;
let pauses: number;
let succession: Succession;

beforeEach(() => {
  [now, reads, pauses, leader] = [1000, 0, 0, 'here_1'];
  jest.spyOn(performance, 'now').mockImplementation(() => now);
  succession = new Succession(
    {
      leader: async () => {
        reads++;
        return leader;
      },
    },
    async () => {
      pauses++;
    },
  );
});
afterEach(() => {
  jest.restoreAllMocks();
});

/** Requests after a second without any. @returns whether they waited */
async function waited(requests = 1): Promise<boolean> {
  now += 1000;
  const before = pauses;
  for (let count = 0; count < requests; count++) await succession.wait();
  return pauses > before;
}

test('the first request of each leader waits', async () => {
  expect(await waited()).toBe(true);
  expect(await waited()).toBe(false);
  leader = 'here_2';
  expect(await waited()).toBe(true);
  expect(await waited()).toBe(false);
});

test('so does each one while the leader is unknown', async () => {
  expect(await waited()).toBe(true);
  leader = undefined;
  expect(await waited()).toBe(true);
  expect(await waited()).toBe(true);
  leader = 'here_1';
  expect(await waited()).toBe(false);
});

test('requests that follow at once do not read the lease', async () => {
  await waited(10);
  await waited(10);
  expect([reads, pauses]).toEqual([2, 1]);
});

test('requests that come at once wait for the same', async () => {
  let end = () => {};
  const pause = new Promise<void>((resolve) => {
    end = resolve;
  });
  const done: string[] = [];
  succession = new Succession({ leader: async () => leader }, () => pause);
  const both = ['first', 'second'].map((name) => succession.wait().then(() => done.push(name)));
  await new Promise(setImmediate);
  expect(done).toEqual([]);
  end();
  await Promise.all(both);
});
