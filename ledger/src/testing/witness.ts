import { eventually } from '@nvidia-virtual/service/testing/eventually';
import type { LedgerErrorCode } from '../errors.js';
import type { RedisLedger } from '../redis-ledger.js';

/** Hears what a ledger says of its state. */
export class Witness {
  readonly said: {
    readonly state: string;
    readonly sentence: string;
    readonly code: LedgerErrorCode | undefined;
  }[] = [];
  #seen = 0;

  constructor(ledger: RedisLedger) {
    ledger.on('state', (state, sentence, error) =>
      this.said.push({ state, sentence, code: error?.code }),
    );
  }

  /** Waits until it says this, after whatever was waited for before. */
  async sees(what: LedgerErrorCode | 'connected'): Promise<void> {
    await eventually(() => {
      const index = this.said.findIndex(
        ({ code, state }, at) => at >= this.#seen && (code ?? state) === what,
      );
      if (index < 0)
        throw new Error(`The ledger did not say ${what}; it said ${JSON.stringify(this.said)}`);
      this.#seen = index + 1;
    });
  }

  sentenceOf(code: LedgerErrorCode): string | undefined {
    return this.said.find((one) => one.code === code)?.sentence;
  }
}
