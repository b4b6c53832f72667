import type { Strategy } from '@nvidia-virtual/kube-common/pod-request';
import type { Demand } from './demand.js';
import { Judge } from './verdict.js';

/** Size of the cache; each judge can hold thousands of states. */
const MOST_JUDGES = 32;

/** Cache of judges: replicas have equal demands, and each pod is judged several times. */
export class Judges {
  readonly #judges = new Map<string, Judge>();

  constructor(readonly strategy: Strategy) {}

  of(demand: Demand): Judge {
    const key = JSON.stringify(demand.request);
    const known = this.#judges.get(key);
    if (known) return known;
    const [oldest] = this.#judges.keys();
    if (this.#judges.size === MOST_JUDGES && oldest !== undefined) this.#judges.delete(oldest);
    const judge = new Judge(demand, this.strategy);
    this.#judges.set(key, judge);
    return judge;
  }
}
