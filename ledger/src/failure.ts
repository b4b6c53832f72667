import { getSystemErrorMap } from 'node:util';
import { ReplyError } from 'ioredis';
import { LedgerError, type LedgerErrorCode } from './errors.js';
import type { RedisTarget } from './redis-options.js';
import { TimeoutError } from './within.js';

/** Whether Redis answered with an error. */
export function isRefusal(error: unknown): error is Error {
  return error instanceof ReplyError;
}

/** Prefixes of Redis' error replies. */
const REFUSALS: readonly (readonly [RegExp, LedgerErrorCode])[] = [
  [/^(WRONGPASS|NOAUTH|ERR (AUTH|Client sent AUTH|invalid password))/, 'REDIS_PASSWORD'],
  [/^(NOPERM|ERR ACL failure|(ERR )?The user executing the script can't)/, 'REDIS_PERMISSION'],
  [/^ERR (DB index|invalid DB index|SELECT is not allowed)/, 'REDIS_DATABASE'],
  [/^LOADING/, 'REDIS_LOADING'],
  [/^OOM/, 'REDIS_MEMORY'],
  [/^READONLY/, 'REDIS_READ_ONLY'],
  [/^MISCONF/, 'REDIS_DISK'],
  [/^BUSY /, 'REDIS_BUSY'],
  [/^(MOVED|ASK|CLUSTERDOWN|CROSSSLOT)/, 'REDIS_CLUSTER'],
];

/** Messages of the system and the client for a closed connection. */
const CLOSED =
  /^(ECONNRESET|EPIPE) |Connection is closed|due to connection close|Stream isn't writeable/;

/** Converts an error of the client to a LedgerError. */
export function explain(error: unknown, target: RedisTarget): LedgerError {
  if (error instanceof LedgerError) return error;
  const values = {
    address: target.address,
    user: `user ${target.username ?? 'default'}`,
    database: target.database,
  };
  const { message, code = '' } = error as NodeJS.ErrnoException;
  if (isRefusal(error)) return refusal(message, values);
  if (error instanceof TimeoutError)
    return new LedgerError('REDIS_SILENT', { ...values, milliseconds: target.answerTimeout });
  // A server without TLS takes the handshake for an incomplete line and waits.
  if (code === 'ETIMEDOUT' && target.tls)
    return new LedgerError('REDIS_TLS', {
      ...values,
      reason: `no answer for ${target.connectTimeout} ms`,
    });
  if (code === 'ETIMEDOUT')
    return new LedgerError('REDIS_SILENT', { ...values, milliseconds: target.connectTimeout });
  if (target.tls && isOfTls(code, message))
    return new LedgerError('REDIS_TLS', { ...values, reason: tlsReason(message) });
  if (CLOSED.test(`${code} ${message}`)) return new LedgerError('REDIS_CLOSED', values);
  return new LedgerError('REDIS_UNREACHABLE', {
    ...values,
    reason: systemReason(error as NodeJS.ErrnoException),
  });
}

function refusal(reply: string, values: Record<string, string | number>): LedgerError {
  const reason = withoutStop(ownWords(reply));
  const code = REFUSALS.find(([pattern]) => pattern.test(reason))?.[1] ?? 'REDIS_FAILED';
  return new LedgerError(code, { ...values, reason });
}

/**
 * The error of a command in a script without its position, which Redis 6.2 puts before it and
 * Redis 7 after it.
 */
function ownWords(reply: string): string {
  const before = /^ERR Error running script \(.*?\): (@\w+:\s*\d+:\s*)*-?/;
  const after = / script: ([0-9a-f]{40}, )?on @.*$/;
  return reply.replace(before, '').replace(after, '');
}

function isOfTls(code: string, message: string): boolean {
  return (
    code.startsWith('ERR_TLS') ||
    code.startsWith('ERR_SSL') ||
    /certificate|CERT|SSL|TLS|issuer/i.test(`${code} ${message}`)
  );
}

/**
 * OpenSSL's reason is the fifth field of
 * `C0:error:0A00010B:SSL routines:ssl3_get_record:wrong version number:../deps/...`.
 */
function tlsReason(message: string): string {
  return withoutStop((/error:\w+:[^:]*:[^:]*:([^:]+)/.exec(message)?.[1] ?? message).trim());
}

function systemReason({ errno, code, message }: NodeJS.ErrnoException): string {
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'its name is not known';
  return (errno !== undefined && getSystemErrorMap().get(errno)?.[1]) || withoutStop(message);
}

function withoutStop(text: string): string {
  return text.replace(/\.$/, '');
}
