import { createHash } from 'node:crypto';
import type { Redis } from 'ioredis';

/** A Lua script; Redis is sent its text only when it does not know it. */
export class Script {
  readonly #text: string;
  readonly #digest: string;

  constructor(text: string) {
    this.#text = text;
    this.#digest = createHash('sha1').update(text).digest('hex');
  }

  async run(client: Redis, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    // As one array: a call with tens of thousands of arguments would not fit on the stack.
    const rest = [keys.length, ...keys].concat(args as string[]);
    try {
      return await client.call('EVALSHA', [this.#digest, ...rest]);
    } catch (error) {
      if (!(error as Error).message.startsWith('NOSCRIPT')) throw error;
      return client.call('EVAL', [this.#text, ...rest]);
    }
  }
}
