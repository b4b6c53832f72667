import {
  type NodeSnapshot,
  type RedisLedger,
  type ReportedSnapshot,
  usedTime,
} from '@nvidia-virtual/ledger';

type Allocation = NodeSnapshot['allocations'][number];

/**
 * What became of GPU time between two figures of an allocation, in percent of the time between
 * them.
 */
export interface Rate {
  readonly used: number;
  readonly waiting: number;
  readonly seconds: number;
}

export interface NodeFigures {
  readonly gpus: NodeSnapshot['gpus'];
  readonly allocations: readonly (Allocation & { readonly rate: Rate | undefined })[];
  /** When the node said so: ms since 1970. */
  readonly at: number;
}

export interface FiguresOptions {
  readonly ledger: Pick<RedisLedger, 'snapshots'>;
  /** Milliseconds that the last answer is good for while the ledger is away. */
  readonly maximumAge: number;
}

interface Point {
  readonly at: number;
  readonly used: number;
  readonly waited: number;
}

/** A node tells its figures once a second, so a difference over a second or two says little. */
const LEAST_WINDOW = 4500;
/** The oldest of these that is not older is compared with. */
const MOST_WINDOW = 30_000;

/** What the nodes last told the ledger, and how it changed. */
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

  /** Why the ledger could not be read just now. */
  get trouble(): Error | undefined {
    return this.#trouble;
  }

  /** When it was tried last, ms since 1970. */
  get readAt(): number {
    return this.#readAt;
  }

  /**
   * Reads the ledger; what is being read already is not read twice. Never fails: `trouble` says why
   * there is nothing new.
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
      (point) => at - point.at <= MOST_WINDOW,
    );
    const used = usedTime(time);
    // The arbiter's count begins anew with the node.
    const before = points.some((point) => point.used > used) ? [] : points;
    const last = before.at(-1);
    if (last === undefined || at - last.at >= 500) before.push({ at, used, waited: time.waited });
    this.#history.set(specification.id, before);
    const base = before.findLast((point) => at - point.at >= LEAST_WINDOW);
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
