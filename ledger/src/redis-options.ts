import { readFileSync } from 'node:fs';
import { LedgerError } from './errors.js';

/** Address of Redis and credentials. */
export interface RedisOptions {
  /** `redis://HOST[:PORT][/DATABASE]`, `rediss://` for TLS, or `unix:///PATH`. */
  readonly url: string;
  /** @default Redis' default user */
  readonly username?: string | undefined;
  /** File with the password in its first line. Read for each connection, so that it may change. */
  readonly passwordFile?: string | undefined;
  /** PEM files for TLS, read for each connection. Without `caFile`: the CAs that Node.js trusts. */
  readonly caFile?: string | undefined;
  readonly certificateFile?: string | undefined;
  readonly keyFile?: string | undefined;
  /** Prefix of each key. @default nvidia-virtual: */
  readonly prefix?: string | undefined;
  /** Timeout for a connection in milliseconds. @default 2000 */
  readonly connectTimeout?: number | undefined;
  /** Timeout for an answer in milliseconds. @default 3000 */
  readonly answerTimeout?: number | undefined;
}

/** RedisOptions with the parsed URL and the defaults. */
export interface RedisTarget extends RedisOptions {
  readonly place: { readonly host: string; readonly port: number } | { readonly path: string };
  readonly tls: boolean;
  readonly database: number;
  readonly prefix: string;
  readonly connectTimeout: number;
  readonly answerTimeout: number;
  /** Address for messages. */
  readonly address: string;
}

const DEFAULT_PORT = 6379;

/** @throws LedgerError REDIS_OPTION */
export function redisTarget(options: RedisOptions): RedisTarget {
  return {
    ...options,
    ...readUrl(options.url),
    prefix: options.prefix ?? 'nvidia-virtual:',
    connectTimeout: options.connectTimeout ?? 2000,
    answerTimeout: options.answerTimeout ?? 3000,
  };
}

/** Reads a file that an option names. @throws LedgerError REDIS_FILE */
export function readOptionFile(key: keyof RedisOptions, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new LedgerError('REDIS_FILE', {
      key,
      path,
      reason: code === 'ENOENT' ? 'no such file' : message,
    });
  }
}

function readUrl(url: string): Pick<RedisTarget, 'place' | 'tls' | 'database' | 'address'> {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  const { protocol, hostname, pathname } = parsed ?? {};
  if (protocol === 'unix:' && hostname === '') {
    const path = decodeURIComponent(String(pathname));
    return { place: { path }, tls: false, database: 0, address: path };
  }
  const database = Number(pathname?.slice(1) ?? '');
  const known = protocol === 'redis:' || protocol === 'rediss:';
  if (
    !parsed ||
    !known ||
    !hostname ||
    parsed.username ||
    parsed.password ||
    !Number.isInteger(database)
  )
    throw new LedgerError('REDIS_OPTION', {
      key: 'redis.url',
      // Only the protocol: the rest can contain a password.
      value: parsed ? `${protocol}...` : 'no URL',
      allowed: 'allowed are redis://host[:port][/database], rediss:// for TLS, and unix:///path',
    });
  const port = Number(parsed.port || DEFAULT_PORT);
  return {
    place: { host: hostname.replace(/^\[(.*)\]$/, '$1'), port },
    tls: protocol === 'rediss:',
    database,
    address: `${hostname}:${port}`,
  };
}
