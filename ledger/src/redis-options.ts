import { readFileSync } from 'node:fs';
import { LedgerError } from './errors.js';

/** Where Redis is and how to get in. What stands beside `url` wins over what the URL says. */
export interface RedisOptions {
  /** `redis://[user[:password]@]host[:port][/database]`, `rediss://` for TLS, `unix:///path/of.sock`. */
  readonly url?: string | undefined;
  /** @default 127.0.0.1 */
  readonly host?: string | undefined;
  /** @default 6379 */
  readonly port?: number | undefined;
  /** A Unix socket, instead of host and port. */
  readonly socket?: string | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  /** A file whose first line is the password; read for each connection, so that it may change. */
  readonly passwordFile?: string | undefined;
  /** @default false, unless one of the files or the server name is given, or the URL says rediss */
  readonly tls?: boolean | undefined;
  /** PEM files, read for each connection. Without `caFile` the CAs that Node knows are trusted. */
  readonly caFile?: string | undefined;
  readonly certificateFile?: string | undefined;
  readonly keyFile?: string | undefined;
  /** The name that the server's certificate must have, if it is not `host`. */
  readonly serverName?: string | undefined;
  /** @default 0 */
  readonly database?: number | undefined;
  /** Before each key. @default nvidia-virtual: */
  readonly prefix?: string | undefined;
  /** Milliseconds until a connection must be there. @default 2000 */
  readonly connectTimeout?: number | undefined;
  /** Milliseconds until an answer must be there. @default 3000 */
  readonly answerTimeout?: number | undefined;
}

/** RedisOptions, checked and whole. */
export interface RedisTarget {
  readonly host: string;
  readonly port: number;
  readonly socket: string | undefined;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly passwordFile: string | undefined;
  readonly tls:
    | {
        readonly caFile: string | undefined;
        readonly certificateFile: string | undefined;
        readonly keyFile: string | undefined;
        readonly serverName: string | undefined;
      }
    | undefined;
  readonly database: number;
  readonly prefix: string;
  readonly connectTimeout: number;
  readonly answerTimeout: number;
  /** For people: without the password. */
  readonly address: string;
}

/** Throws a LedgerError REDIS_OPTION that names the key, the value (never a password) and what is allowed. */
export function redisTarget(options: RedisOptions): RedisTarget {
  const all = { ...readUrl(options.url), ...given(options) };
  const host = all.host ?? '127.0.0.1';
  const port = wholeNumber('port', all.port ?? 6379, 1, 65535);
  const target = {
    host,
    port,
    socket: all.socket,
    username: all.username,
    password: all.password,
    passwordFile: all.passwordFile,
    tls: tlsOf(all),
    database: wholeNumber('database', all.database ?? 0, 0, 2 ** 31 - 1),
    prefix: prefixOf(all.prefix ?? 'nvidia-virtual:'),
    connectTimeout: wholeNumber('connectTimeout', all.connectTimeout ?? 2000, 1, 600_000),
    answerTimeout: wholeNumber('answerTimeout', all.answerTimeout ?? 3000, 1, 600_000),
    address: all.socket ?? (host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`),
  };
  if (target.password !== undefined && target.passwordFile !== undefined)
    throw refused('passwordFile', target.passwordFile, 'a password was given too, and only one of the two can be meant');
  if (target.username !== undefined && target.password === undefined && target.passwordFile === undefined)
    throw refused('username', target.username, 'it needs a password or a password file beside it');
  return target;
}

/** Reads a file that an option names. Throws a LedgerError REDIS_FILE. */
export function readOptionFile(key: keyof RedisOptions, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new LedgerError('REDIS_FILE', { key, path, reason: code === 'ENOENT' ? 'no such file' : message });
  }
}

function readUrl(url: string | undefined): RedisOptions {
  if (url === undefined) return {};
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed?.protocol === 'unix:' && parsed.hostname === '') return { socket: decodeURIComponent(parsed.pathname) };
  if (parsed?.protocol !== 'redis:' && parsed?.protocol !== 'rediss:')
    throw refused('url', parsed ? `${parsed.protocol}...` : 'no URL', 'allowed are redis://host:port, rediss://host:port and unix:///path');
  const database = parsed.pathname.replace('/', '');
  return given({
    host: parsed.hostname.replace(/^\[(.*)\]$/, '$1') || undefined,
    port: parsed.port === '' ? undefined : Number(parsed.port),
    username: decodeURIComponent(parsed.username) || undefined,
    password: decodeURIComponent(parsed.password) || undefined,
    database: database === '' ? undefined : Number(database),
    tls: parsed.protocol === 'rediss:',
  });
}

function tlsOf({ tls, caFile, certificateFile, keyFile, serverName, socket }: RedisOptions): RedisTarget['tls'] {
  const files = { caFile, certificateFile, keyFile, serverName };
  const [named, value] = Object.entries(files).find(([, one]) => one !== undefined) ?? [];
  if (!(tls ?? named !== undefined)) {
    if (named !== undefined) throw refused(named, value as string, 'it is of use only with TLS, which is off');
    return undefined;
  }
  if (socket !== undefined) throw refused('tls', 'true', 'a Unix socket has no TLS');
  if ((certificateFile === undefined) !== (keyFile === undefined))
    throw refused(certificateFile === undefined ? 'certificateFile' : 'keyFile', 'missing', 'certificate and key are given together');
  return files;
}

function prefixOf(prefix: string): string {
  // What stands in the first braces of a key decides where a cluster puts it: that is the node's name.
  if (!/^[^{}\s]*$/.test(prefix)) throw refused('prefix', JSON.stringify(prefix), 'allowed is anything without braces and spaces');
  return prefix;
}

function wholeNumber(key: keyof RedisOptions, value: number, least: number, most: number): number {
  if (!Number.isInteger(value) || value < least || value > most)
    throw refused(key, String(value), `allowed are whole numbers from ${least} to ${most}`);
  return value;
}

function given(options: RedisOptions): RedisOptions {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

function refused(key: string, value: string, allowed: string): LedgerError {
  return new LedgerError('REDIS_OPTION', { key: `redis.${key}`, value, allowed });
}
