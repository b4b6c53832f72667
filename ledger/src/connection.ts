import { type RedisOptions as ClientOptions, Redis } from 'ioredis';
import { disconnect } from './disconnect.js';
import { LedgerError } from './errors.js';
import { explain, isRefusal } from './failure.js';
import { type RedisTarget, readOptionFile } from './redis-options.js';
import { Silence, within } from './within.js';

/** Milliseconds that a server which does not close its end may keep us. */
const DISCONNECT_TIMEOUT = 100;

/**
 * One connection to Redis, made when it is needed and anew after it failed. It keeps no queue: a
 * command is answered, or it fails with a LedgerError that says why. When to try again is the
 * caller's business.
 */
export class Connection {
  readonly #target: RedisTarget;
  #opening: Promise<Redis> | undefined;
  #newest: Redis | undefined;
  /** The newest, once it was greeted. */
  #usable: Redis | undefined;
  #closed = false;

  constructor(target: RedisTarget) {
    this.#target = target;
  }

  /**
   * Runs commands, twice if a connection that had been good turned out to have ended. What times
   * out may still be carried out by Redis, later.
   */
  async use<T>(work: (client: Redis) => Promise<T>): Promise<T> {
    const hadBeenGood = this.#usable?.status === 'ready';
    try {
      return await this.#use(work);
    } catch (error) {
      if (!hadBeenGood || (error as LedgerError).code !== 'REDIS_CLOSED') throw error;
      return this.#use(work);
    }
  }

  async #use<T>(work: (client: Redis) => Promise<T>): Promise<T> {
    if (this.#closed) throw new LedgerError('LEDGER_CLOSED');
    const client = await this.#connected();
    try {
      return await within(this.#target.answerTimeout, work(client));
    } catch (error) {
      // A refusal leaves the connection as it was; but another server may answer to the same name
      // after a failover.
      const usable = isRefusal(error) && !/^(READONLY|NOAUTH|MASTERDOWN)/.test(error.message);
      if (!usable) this.#drop(client);
      throw explain(error, this.#target);
    }
  }

  close(): void {
    this.#closed = true;
    disconnect(this.#newest);
  }

  #drop(client: Redis): void {
    disconnect(client);
    if (this.#usable === client) this.#usable = undefined;
  }

  async #connected(): Promise<Redis> {
    if (this.#usable?.status === 'ready') return this.#usable;
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined;
    });
    this.#usable = await this.#opening;
    return this.#usable;
  }

  async #open(): Promise<Redis> {
    disconnect(this.#newest);
    let failure: Error | undefined;
    try {
      const client = new Redis(clientOptions(this.#target));
      this.#newest = client;
      client.on('error', (error: Error) => {
        failure ??= error;
      });
      await client.connect();
      await within(this.#target.answerTimeout, this.#greet(client));
      return client;
    } catch (error) {
      disconnect(this.#newest);
      // Of a connection that came to nothing the client says that it is closed, and the socket why.
      const spoken = isRefusal(error) || error instanceof LedgerError || error instanceof Silence;
      throw explain(spoken ? error : (failure ?? error), this.#target);
    }
  }

  /** Done here and not by the client, so that a refusal is seen as one. */
  async #greet(client: Redis): Promise<void> {
    const { username, passwordFile, database } = this.#target;
    if (passwordFile !== undefined) {
      const password = readOptionFile('passwordFile', passwordFile).split('\n', 1)[0] as string;
      await client.call('AUTH', username === undefined ? [password] : [username, password]);
    }
    if (database !== 0) await client.select(database);
    // Finds out now, whatever comes next, that Redis is loading its data or wants a password.
    await client.ping();
  }
}

function clientOptions(target: RedisTarget): ClientOptions {
  const read = (key: 'caFile' | 'certificateFile' | 'keyFile') =>
    target[key] === undefined ? undefined : readOptionFile(key, target[key]);
  return {
    ...target.place,
    ...(target.tls && {
      tls: { ca: read('caFile'), cert: read('certificateFile'), key: read('keyFile') },
    }),
    connectTimeout: target.connectTimeout,
    disconnectTimeout: DISCONNECT_TIMEOUT,
    lazyConnect: true,
    retryStrategy: () => null,
    enableOfflineQueue: false,
    enableReadyCheck: false,
    autoResendUnfulfilledCommands: false,
    disableClientInfo: true,
  };
}
