import { closeSync, fsyncSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import path from 'node:path';
import { ProxyError, systemReason } from '@nvidia-virtual/service/errors';

const HEXADECIMAL = /^[0-9a-f]{64}$/;

/** A new file for a key. It exists before the key does, so that no key is lost. */
export class KeyFile {
  readonly #file: string;
  readonly #fd: number;
  #written = false;

  /**
   * @param directory of the data, in which the key must not be
   * @throws ProxyError KEY_NOT_WRITTEN
   */
  constructor(file: string, directory: string) {
    this.#file = path.resolve(file);
    if (this.#file.startsWith(`${directory}${path.sep}`))
      throw this.#refusal('it would lie beside the data');
    try {
      this.#fd = openSync(this.#file, 'wx', 0o600);
    } catch (error) {
      throw this.#refusal(systemReason(error));
    }
  }

  write(key: string): void {
    writeSync(this.#fd, `${key}\n`);
    fsyncSync(this.#fd);
    this.#written = true;
  }

  /** Removes it if there is no key. */
  close(): void {
    closeSync(this.#fd);
    if (!this.#written) rmSync(this.#file, { force: true });
  }

  #refusal(reason: string): ProxyError {
    return new ProxyError('KEY_NOT_WRITTEN', { file: this.#file, reason });
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
