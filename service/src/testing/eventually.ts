import { setTimeout as delay } from 'node:timers/promises';

/** Timeout of a failing test. A passing test never waits this long. */
const DEADLINE_MS = 90_000;

/** Retries an assertion until it passes. */
export async function eventually(assertion: () => unknown, deadline = DEADLINE_MS): Promise<void> {
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

/**
 * Polls until `look` returns something other than `undefined` and `false`, and returns it.
 * @param what names the awaited thing in the error message
 */
export async function until<T>(
  look: () => Promise<T | undefined | false> | T | undefined | false,
  what = String(look),
): Promise<T> {
  const end = Date.now() + DEADLINE_MS;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (Date.now() > end) throw new Error(`timed out waiting for: ${what}`);
    await delay(25);
  }
}
