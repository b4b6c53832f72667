import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { runCommand } from '@nvidia-virtual/toolchain/command';
import {
  ensurePrerequisites,
  SIGNING_PREREQUISITES,
} from '@nvidia-virtual/toolchain/prerequisites';

const NAME = 'Release <release@example.com>';

/** A key of OpenPGP for tests. */
export class TestKey {
  private constructor(readonly directory: string) {}

  static async create(directory: string): Promise<TestKey> {
    await ensurePrerequisites(SIGNING_PREREQUISITES);
    mkdirSync(directory, { mode: 0o700, recursive: true });
    const key = new TestKey(directory);
    writeFileSync(key.#passphrase, 'a passphrase\n');
    const unlock = ['--pinentry-mode', 'loopback', '--passphrase-file', key.#passphrase];
    await key.gpg(...unlock, '--quick-generate-key', NAME, 'rsa2048', 'sign', 'never');
    await key.gpg(...unlock, '--output', key.#keyring, '--export-secret-keys', NAME);
    await key.gpg('--output', key.publicKeyring, '--export', NAME);
    await runCommand('gpgconf', ['--homedir', directory, '--kill', 'all']);
    return key;
  }

  /** Options of `npm run chart` and `npm run release`; the last one is the passphrase's file. */
  get options(): string[] {
    return [
      ...['--key', 'release@example.com', '--keyring', this.#keyring],
      ...['--passphrase-file', this.#passphrase],
    ];
  }

  /** For those who verify. */
  get publicKeyring(): string {
    return path.join(this.directory, 'public.gpg');
  }

  get #keyring(): string {
    return path.join(this.directory, 'secret.gpg');
  }

  get #passphrase(): string {
    return path.join(this.directory, 'passphrase');
  }

  /** @throws Error with GnuPG's message */
  async gpg(...args: readonly string[]): Promise<string> {
    const all = ['--homedir', this.directory, '--batch', ...args];
    const { status, output } = await runCommand('gpg', all);
    if (status !== 0) throw new Error(`\`gpg ${args.join(' ')}\` failed:\n${output}`);
    return output;
  }
}
