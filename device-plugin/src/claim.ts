import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { readIfThere, writeFileAtomically } from '@nvidia-virtual/service/files';

/**
 * Fencing: the plugin that started last owns the node. During an upgrade, the new plugin can start
 * before the exit of the old one. If both registered again whenever the kubelet forgot them, they
 * would replace each other forever.
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
