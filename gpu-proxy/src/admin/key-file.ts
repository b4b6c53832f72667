import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { ProxyError, systemReason } from '@nvidia-virtual/service/errors';

const HEXADECIMAL = /^[0-9a-f]{64}$/;

export function makeKey(): string {
  return randomBytes(32).toString('hex');
}

/**
 * Writes a key to a new file.
 * @param directory of the data, in which the key must not be
 * @throws ProxyError KEY_NOT_WRITTEN
 */
export function writeKey(key: string, file: string, directory: string): void {
  const refusal = (reason: string) => new ProxyError('KEY_NOT_WRITTEN', { file, reason });
  if (path.resolve(file).startsWith(`${directory}${path.sep}`))
    throw refusal('it would lie beside the data');
  try {
    writeFileSync(file, `${key}\n`, { flag: 'wx', mode: 0o600, flush: true });
  } catch (error) {
    throw refusal(systemReason(error));
  }
}

/** @param file `-`: standard input. @throws ProxyError KEY_NOT_READ */
export function readKey(file: string): string {
  let text: string;
  try {
    text = readFileSync(file === '-' ? 0 : file, 'utf8').trim();
  } catch (error) {
    throw new ProxyError('KEY_NOT_READ', { file, reason: systemReason(error) });
  }
  if (HEXADECIMAL.test(text)) return text;
  throw new ProxyError('KEY_NOT_READ', { file, reason: 'it has no key of 64 hexadecimal digits' });
}
