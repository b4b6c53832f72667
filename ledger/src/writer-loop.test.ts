import { eventually } from '@nvidia-virtual/service/testing/eventually';
import { WriterLoop } from './writer-loop.js';

/** Attempts wait until the test lets them end. */
class Outside {
  readonly attempts: number[] = [];
  readonly #ends: {
    resolve: () => void;
    reject: (error: Error) => void;
  }[] = [];
  readonly bring = (wanted: number) => {
    this.attempts.push(wanted);
    return new Promise<void>((resolve, reject) => this.#ends.push({ resolve, reject }));
  };

  async ends(how: 'well' | 'badly'): Promise<void> {
    await eventually(() => expect(this.#ends).toHaveLength(1));
    const end = this.#ends.pop();
    if (how === 'badly') end?.reject(new Error('away'));
    else end?.resolve();
  }
}

const NEVER = { renewal: 1e6 };
let outside: Outside;

beforeEach(() => {
  outside = new Outside();
});

test('a wish is brought at once; of those that come meanwhile only the last', async () => {
  const loop = new WriterLoop(outside.bring, NEVER);
  expect(loop.started).toBe(false);
  for (const wish of [1, 2, 3]) loop.want(wish);
  expect(loop.started).toBe(true);
  await outside.ends('well');
  await outside.ends('well');
  await loop.stop();
  expect(outside.attempts).toEqual([1, 3]);
});

test('what failed is tried again, with the last wish', async () => {
  const loop = new WriterLoop(outside.bring, NEVER);
  loop.want(1);
  await outside.ends('badly');
  loop.want(2);
  await outside.ends('badly');
  await outside.ends('well');
  await loop.stop();
  expect(outside.attempts).toEqual([1, 2, 2]);
});

test('a wish that was brought is renewed', async () => {
  const loop = new WriterLoop(outside.bring, { renewal: 10 });
  loop.want(1);
  for (let times = 0; times < 3; times++) await outside.ends('well');
  await eventually(() => expect(outside.attempts).toEqual([1, 1, 1, 1]));
  const stopped = loop.stop();
  await outside.ends('well');
  await stopped;
});

test('stop() lets the last wish be tried once, and no more while it fails', async () => {
  const loop = new WriterLoop(outside.bring, NEVER);
  loop.want(1);
  loop.want(2);
  const stopped = loop.stop();
  await outside.ends('well');
  await outside.ends('badly');
  await stopped;
  expect(outside.attempts).toEqual([1, 2]);
});

test('stop() of a loop that never began', async () => {
  await new WriterLoop(outside.bring, NEVER).stop();
  expect(outside.attempts).toEqual([]);
});
