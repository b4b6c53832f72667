import {
  type NodeSnapshot,
  type RedisLedger,
  type ReportedSnapshot,
  usedTime,
} from '@nvidia-virtual/ledger';

type Allocation = NodeSnapshot['allocations'][number];

/** GPU time between two reports of an allocation, in percent of the elapsed time. */
export interface Rate {
  readonly used: number;
  readonly waiting: number;
  readonly seconds: number;
}

export interface NodeFigures {
  readonly gpus: NodeSnapshot['gpus'];
  readonly allocations: readonly (Allocation & { readonly rate: Rate | undefined })[];
  /** Time of the node's report, ms since 1970. */
  readonly at: number;
}

interface FiguresOptions {
  readonly ledger: Pick<RedisLedger, 'snapshots'>;
  /** Milliseconds for which the last figures are kept while the ledger is unreachable. */
  readonly maximumAge: number;
}

interface Point {
  readonly at: number;
  readonly used: number;
  readonly waited: number;
}

/** Milliseconds. Nodes report once a second, so a shorter window would be imprecise. */
const MINIMUM_WINDOW = 4500;
/** Milliseconds. Older reports are dropped. */
const MAXIMUM_WINDOW = 30_000;

/** The last report of each node in the ledger, and the rates computed from it. */
export class Figures {
  readonly #options: FiguresOptions;
  readonly #history = new Map<string, Point[]>();
  #nodes: ReadonlyMap<string, NodeFigures> = new Map();
  #trouble: Error | undefined;
  #readAt = 0;
  #reading: Promise<void> | undefined;

  constructor(options: FiguresOptions) {
    this.#options = options;
  }

  get nodes(): ReadonlyMap<string, NodeFigures> {
    return this.#nodes;
  }

  /** Error of the last read of the ledger; undefined if it succeeded. */
  get trouble(): Error | undefined {
    return this.#trouble;
  }

  /** End of the last read, failed or not, ms since 1970. */
  get readAt(): number {
    return this.#readAt;
  }

  /**
   * Reads the ledger. Concurrent calls share one read. Does not throw: `trouble` holds the error.
   */
  async read(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
      this.#readAt = Date.now();
    });
    await this.#reading;
  }

  async #read(): Promise<void> {
    try {
      const snapshots = await this.#options.ledger.snapshots();
      const now = Date.now();
      this.#nodes = new Map(
        snapshots.map((snapshot) => [snapshot.node, this.#figures(snapshot, now)]),
      );
      this.#forget();
      this.#trouble = undefined;
    } catch (error) {
      this.#trouble = error as Error;
      const oldest = Date.now() - this.#options.maximumAge;
      this.#nodes = new Map([...this.#nodes].filter(([, { at }]) => at >= oldest));
    }
  }

  #figures({ gpus, allocations, age }: ReportedSnapshot, now: number): NodeFigures {
    const at = now - age;
    return {
      gpus,
      at,
      allocations: allocations.map((one) => ({ ...one, rate: this.#rate(one, at) })),
    };
  }

  #rate({ specification, time }: Allocation, at: number): Rate | undefined {
    const points = (this.#history.get(specification.id) ?? []).filter(
      (point) => at - point.at <= MAXIMUM_WINDOW,
    );
    const used = usedTime(time);
    // The arbiter's counters restart with the node's proxy.
    const before = points.some((point) => point.used > used) ? [] : points;
    const last = before.at(-1);
    if (last === undefined || at - last.at >= 500) before.push({ at, used, waited: time.waited });
    this.#history.set(specification.id, before);
    const base = before.findLast((point) => at - point.at >= MINIMUM_WINDOW);
    if (!base) return undefined;
    const percent = (nanoseconds: number) =>
      Math.min(100, Math.max(0, Math.round((nanoseconds / (at - base.at)) * 1e-3) / 10));
    return {
      used: percent(used - base.used),
      waiting: percent(time.waited - base.waited),
      seconds: Math.round((at - base.at) / 1000),
    };
  }

  #forget(): void {
    const living = new Set(
      [...this.#nodes.values()].flatMap(({ allocations }) =>
        allocations.map((one) => one.specification.id),
      ),
    );
    for (const id of this.#history.keys()) if (!living.has(id)) this.#history.delete(id);
  }
}
