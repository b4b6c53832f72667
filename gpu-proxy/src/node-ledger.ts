import { type Ledger, MemoryLedger, ownerOf, RedisLedger } from '@nvidia-virtual/ledger';
import type { Logger } from 'pino';
import type { Backend } from './backend.js';
import type { Configuration } from './configuration/schema.js';
import type { GpuNode } from './node.js';

export interface NodeLedgerOptions {
  readonly node: GpuNode;
  readonly backend: Backend;
  /** Its word says to the ledger that a proxy that starts again is the same owner. */
  readonly stateDirectory: string;
  readonly ledger: Configuration['ledger'];
  readonly logger: Logger;
}

/** Figures change without an event. */
const EVERY_MS = 1000;
/** Many sessions may come at once: they are told together. */
const TOGETHER_MS = 50;
/** One that is away comes back; one that refuses the node waits for somebody to mend it. */
const LEVELS = { connected: 'info', away: 'warn', refused: 'error' } as const;

/** Tells the ledger what is true on a node: soon after each change, and once a second. */
export class NodeLedger {
  readonly #node: GpuNode;
  readonly #ledger: Ledger;
  readonly #logger: Logger;
  readonly #interval: NodeJS.Timeout;
  #soon: NodeJS.Timeout | undefined;
  #ended = false;

  /** @throws LedgerError for a name or an option that is not allowed */
  constructor(options: NodeLedgerOptions) {
    this.#node = options.node;
    this.#ledger = openLedger(options);
    this.#logger = options.logger;
    logEvents(this.#ledger, this.#logger);
    this.#node.on('changed', () => this.#publishSoon());
    this.#interval = setInterval(() => void this.#publishFresh(), EVERY_MS);
    this.#publish();
  }

  get connected(): boolean {
    return this.#ledger.state?.state === 'connected';
  }

  /** Undefined while it is written. */
  get trouble(): string | undefined {
    const { state } = this.#ledger;
    if (state === undefined) return 'The ledger has not been reached yet.';
    return state.state === 'connected' ? undefined : state.sentence;
  }

  /** What it was told last stays until its lease ends, for the proxy that comes next. */
  async close(): Promise<void> {
    this.#ended = true;
    clearInterval(this.#interval);
    clearTimeout(this.#soon);
    await this.#ledger.close();
  }

  #publishSoon(): void {
    if (this.#ended) return;
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined;
      this.#publish();
    }, TOGETHER_MS);
  }

  async #publishFresh(): Promise<void> {
    await this.#node.refresh();
    this.#publish();
  }

  /** A figures file that somebody removed must not end a node. */
  #publish(): void {
    if (this.#ended) return;
    try {
      this.#ledger.publish(this.#node.snapshot());
    } catch (error) {
      this.#logger.error(`The ledger could not be told what is true on this node: ${(error as Error).message}.`);
    }
  }
}

function openLedger({ node, backend, stateDirectory, ledger: { url, username, passwordFile, tls } }: NodeLedgerOptions): Ledger {
  // The simulator's GPUs have the same UUIDs on every machine.
  const writer = { node: node.name, owner: ownerOf(stateDirectory), claimGpus: backend.kind === 'real' };
  if (url === undefined) return new MemoryLedger({ writer });
  const redis = { url, username, passwordFile, caFile: tls.ca, certificateFile: tls.cert, keyFile: tls.key };
  return new RedisLedger({ redis, writer });
}

function logEvents(ledger: Ledger, logger: Logger): void {
  ledger.on('state', (state, sentence) => logger[LEVELS[state]]({ ledger: state }, sentence));
}
