import { type RedisOptions as ClientOptions, Redis } from 'ioredis';
import { disconnect } from './disconnect.js';
import { LedgerError } from './errors.js';
import { explain, isRefusal } from './failure.js';
import { type RedisTarget, readOptionFile } from './redis-options.js';
import { TimeoutError, within } from './within.js';

/** Milliseconds to wait for the server to close its end of the connection. */
const DISCONNECT_TIMEOUT = 100;

/**
 * One connection to Redis, opened on first use and again after a failure. There is no queue: a
 * command is answered or fails with a LedgerError. Retries are up to the caller.
 */
export class Connection {
  readonly #target: RedisTarget;
  #opening: Promise<Redis> | undefined;
  #newest: Redis | undefined;
  /** The newest connection after a successful greeting. */
  #usable: Redis | undefined;
  #closed = false;

  constructor(target: RedisTarget) {
    this.#target = target;
  }

  /**
   * Runs commands. Retries once if an established connection turns out to be closed. Redis may
   * still execute a command that timed out.
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
      // The connection stays usable after a refusal, except after a failover, when another
      // server has the name.
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
      // For a failed connection, the client only reports that it is closed. The socket has the
      // cause.
      const answered =
        isRefusal(error) || error instanceof LedgerError || error instanceof TimeoutError;
      throw explain(answered ? error : (failure ?? error), this.#target);
    }
  }

  /** Authenticates. The client would do so itself, but report a refusal as a closed connection. */
  async #greet(client: Redis): Promise<void> {
    const { username, passwordFile, database } = this.#target;
    if (passwordFile !== undefined) {
      const password = readOptionFile('passwordFile', passwordFile).split('\n', 1)[0] as string;
      await client.call('AUTH', username === undefined ? [password] : [username, password]);
    }
    if (database !== 0) await client.select(database);
    // Detects at once that Redis is loading its data or requires a password.
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
