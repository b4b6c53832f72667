import { ownerOf, RedisLedger } from '@nvidia-virtual/ledger';
import type { Logger } from 'pino';
import type { Configuration } from './configuration/schema.js';
import type { Backend } from './gpus/backend.js';
import type { GpuNode } from './node.js';

interface NodeLedgerOptions {
  readonly node: GpuNode;
  readonly backend: Backend;
  /** Identifies the owner of the ledger entry across restarts of gpu-proxy. */
  readonly stateDirectory: string;
  readonly ledger: Configuration['ledger'] & { readonly url: string };
  readonly logger: Logger;
}

/** Publishing interval: figures change without an event. */
const EVERY_MS = 1000;
/** Debounce: many sessions can start at once. */
const TOGETHER_MS = 200;
/** A ledger that is away recovers by itself; one that refuses the node needs an operator. */
const LEVELS = { connected: 'info', away: 'warn', refused: 'error' } as const;

/** Publishes the state of a node to the ledger: soon after each change, and once a second. */
export class NodeLedger {
  readonly #node: GpuNode;
  readonly #ledger: RedisLedger;
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

  /** The reason why the ledger is not updated; undefined: it is. */
  get trouble(): string | undefined {
    const { state } = this.#ledger;
    if (state === undefined) return 'The ledger has not been reached yet.';
    return state.state === 'connected' ? undefined : state.sentence;
  }

  /** Stops publishing. The last value stays until its TTL ends, for the next gpu-proxy. */
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

  /** Logs errors: a removed figures file must not terminate the node. */
  #publish(): void {
    if (this.#ended) return;
    try {
      this.#ledger.publish(this.#node.snapshot());
    } catch (error) {
      this.#logger.error(
        `The state of this node could not be written to the ledger: ${(error as Error).message}.`,
      );
    }
  }
}

function openLedger({
  node,
  backend,
  stateDirectory,
  ledger: { url, username, passwordFile, tls },
}: NodeLedgerOptions): RedisLedger {
  // The simulator's GPUs have the same UUIDs on every machine.
  const writer = {
    node: node.name,
    owner: ownerOf(stateDirectory),
    claimGpus: backend.kind === 'real',
  };
  const redis = {
    url,
    username,
    passwordFile,
    caFile: tls.ca,
    certificateFile: tls.cert,
    keyFile: tls.key,
  };
  return new RedisLedger({ redis, writer });
}

function logEvents(ledger: RedisLedger, logger: Logger): void {
  ledger.on('state', (state, sentence) => logger[LEVELS[state]]({ ledger: state }, sentence));
}
