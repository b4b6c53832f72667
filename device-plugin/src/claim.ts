import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { readIfThere, writeFileAtomically } from '@nvidia-virtual/gpu-proxy/files';

/**
 * Who started last is the node's plugin. An upgrade may start the new one before the old one has ended; if both registered whenever the kubelet
 * forgot them, they would take the resource from each other for ever.
 */
export class Claim {
  readonly #file: string;
  readonly #mine = randomBytes(8).toString('hex');

  constructor(directory: string) {
    this.#file = path.join(directory, 'claim');
    writeFileAtomically(this.#file, this.#mine);
  }

  get superseded(): boolean {
    const claim = readIfThere(this.#file);
    return claim !== undefined && claim !== this.#mine;
  }
}
