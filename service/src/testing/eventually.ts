import { setTimeout as delay } from 'node:timers/promises';

/** Ends a test that fails; no test waits as long otherwise. */
const DEADLINE_MS = 90_000;

/** Tries an assertion until it holds. */
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
 * Looks until there is something (not `undefined` and not `false`), and returns it.
 * @param what that is waited for, for the error of a test that fails
 */
export async function until<T>(
  look: () => Promise<T | undefined | false> | T | undefined | false,
  what = String(look),
): Promise<T> {
  const end = Date.now() + DEADLINE_MS;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (Date.now() > end) throw new Error(`waited in vain for: ${what}`);
    await delay(25);
  }
}
