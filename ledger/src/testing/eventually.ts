import { setTimeout as delay } from 'node:timers/promises';

/** Tries an assertion until it holds; the deadline is only there so that a test that fails ends. */
export async function eventually(assertion: () => unknown, deadline = 90_000): Promise<void> {
  const end = Date.now() + deadline;
  for (;;) {
    try {
      await assertion();
      return;
    } catch (error) {
      if (Date.now() > end) throw error;
      await delay(25);
    }
  }
}
