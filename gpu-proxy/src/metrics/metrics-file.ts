import type { Logger } from 'pino';
import { systemReason } from '../errors.js';
import { readIfThere, writeFileAtomically } from '../files.js';
import type { EventCounts } from './events.js';
import type { SavedTotals } from './totals.js';

const VERSION = 1;

/** What a proxy counted and no living process can tell again. */
export interface SavedMetrics {
  readonly events: EventCounts;
  readonly allocations: SavedTotals;
}

/** metrics.json in the state directory, by which a counter goes on where the last proxy left it. */
export class MetricsFile {
  readonly #path: string;
  readonly #logger: Pick<Logger, 'error'>;
  #failed = false;

  constructor(path: string, logger: Pick<Logger, 'error'>) {
    this.#path = path;
    this.#logger = logger;
  }

  /** Nothing when there is none, or none of this version: then everything is counted from 0, as Prometheus knows it of processes that start. */
  load(): Partial<SavedMetrics> {
    try {
      const saved = JSON.parse(readIfThere(this.#path) ?? '{}') as Partial<SavedMetrics> & { readonly version?: number };
      return saved.version === VERSION ? saved : {};
    } catch {
      return {};
    }
  }

  /** A node goes on without, and says so once. */
  save(metrics: SavedMetrics): void {
    try {
      writeFileAtomically(this.#path, JSON.stringify({ version: VERSION, ...metrics }));
      this.#failed = false;
    } catch (error) {
      if (!this.#failed)
        this.#logger.error(`${this.#path} cannot be written: ${systemReason(error)}. The next gpu-proxy may count from less.`);
      this.#failed = true;
    }
  }
}
