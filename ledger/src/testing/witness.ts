import { eventually } from '@nvidia-virtual/service/testing/eventually';
import type { LedgerErrorCode } from '../errors.js';
import type { RedisLedger } from '../redis-ledger.js';

/** Records the states that a ledger emits. */
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

  /** Waits for this state after the one that was awaited before. */
  async sees(what: LedgerErrorCode | 'connected'): Promise<void> {
    await eventually(() => {
      const index = this.said.findIndex(
        ({ code, state }, at) => at >= this.#seen && (code ?? state) === what,
      );
      if (index < 0)
        throw new Error(`The ledger did not emit ${what}. It emitted ${JSON.stringify(this.said)}`);
      this.#seen = index + 1;
    });
  }

  sentenceOf(code: LedgerErrorCode): string | undefined {
    return this.said.find((one) => one.code === code)?.sentence;
  }
}
