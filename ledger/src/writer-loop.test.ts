import { eventually } from '@nvidia-virtual/service/testing/eventually';
import { WriterLoop } from './writer-loop.js';

/** An external system. Each write waits until the test ends it. */
class FakeSystem {
  readonly attempts: number[] = [];
  readonly #ends: {
    resolve: () => void;
    reject: (error: Error) => void;
  }[] = [];
  readonly write = (wanted: number) => {
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
let system: FakeSystem;

beforeEach(() => {
  system = new FakeSystem();
});

test('a value is written at once; of values set meanwhile only the last is written', async () => {
  const loop = new WriterLoop(system.write, NEVER);
  expect(loop.started).toBe(false);
  for (const value of [1, 2, 3]) loop.want(value);
  expect(loop.started).toBe(true);
  await system.ends('well');
  await system.ends('well');
  await loop.stop();
  expect(system.attempts).toEqual([1, 3]);
});

test('a failed write is retried with the latest value', async () => {
  const loop = new WriterLoop(system.write, NEVER);
  loop.want(1);
  await system.ends('badly');
  loop.want(2);
  await system.ends('badly');
  await system.ends('well');
  await loop.stop();
  expect(system.attempts).toEqual([1, 2, 2]);
});

test('a written value is renewed', async () => {
  const loop = new WriterLoop(system.write, { renewal: 10 });
  loop.want(1);
  for (let times = 0; times < 3; times++) await system.ends('well');
  await eventually(() => expect(system.attempts).toEqual([1, 1, 1, 1]));
  const stopped = loop.stop();
  await system.ends('well');
  await stopped;
});

test('stop() attempts the latest value once', async () => {
  const loop = new WriterLoop(system.write, NEVER);
  loop.want(1);
  loop.want(2);
  const stopped = loop.stop();
  await system.ends('well');
  await system.ends('badly');
  await stopped;
  expect(system.attempts).toEqual([1, 2]);
});

test('stop() of a loop that was never started', async () => {
  await new WriterLoop(system.write, NEVER).stop();
  expect(system.attempts).toEqual([]);
});
