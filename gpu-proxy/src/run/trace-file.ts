import { closeSync, fstatSync, ftruncateSync, openSync, writeSync } from 'node:fs';
import { ProxyError, systemReason } from '@nvidia-virtual/service/errors';

const BEGIN = '[\n';
/** Each event ends so. */
const SEPARATOR = ',\n';
const END = '\n]\n';

/**
 * The file of a run to which all its processes append events (interposer/trace/). A name that ends
 * in .json makes it a Chrome trace, which is an array.
 */
export class TraceFile {
  readonly #file: number;
  readonly #isJson: boolean;

  /** @throws ProxyError TRACE_NOT_CREATED */
  constructor(path: string) {
    this.#isJson = path.endsWith('.json');
    try {
      this.#file = openSync(path, 'w');
      if (this.#isJson) writeSync(this.#file, BEGIN);
    } catch (error) {
      throw new ProxyError('TRACE_NOT_CREATED', { path, reason: systemReason(error) });
    }
  }

  /** Completes the array. Viewers accept the file without that, too. */
  close(): void {
    if (this.#isJson) {
      const { size } = fstatSync(this.#file);
      const end = size > BEGIN.length ? size - SEPARATOR.length : size;
      ftruncateSync(this.#file, end);
      writeSync(this.#file, END, end);
    }
    closeSync(this.#file);
  }
}
