import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { mustRun, runCommand } from '../command.js';
import { ToolchainError } from '../errors.js';
import { ensurePrerequisites, SIGNING_PREREQUISITES } from '../prerequisites.js';

/** A private key of OpenPGP. */
export interface SigningKey {
  /** User id or fingerprint. */
  readonly name: string;
  /** File that `gpg --export-secret-keys` wrote. */
  readonly keyring: string;
  /** File with its passphrase in the first line. */
  readonly passphraseFile: string;
}

/** Options of commands that sign, for parseArgs. */
export const KEY_OPTIONS = {
  key: { type: 'string' },
  keyring: { type: 'string' },
  'passphrase-file': { type: 'string' },
} as const;

export const KEY_HELP = `  --key NAME           signs with the OpenPGP key of this user id
  --keyring FILE       that \`gpg --export-secret-keys NAME\` wrote
  --passphrase-file FILE  with the passphrase of the key`;

/** The key that the options name. Undefined: none. @throws ToolchainError if they do not fit */
export function signingKey(
  values: Readonly<Partial<Record<keyof typeof KEY_OPTIONS, string>>>,
): SigningKey | undefined {
  const { key, keyring, 'passphrase-file': passphraseFile } = values;
  if (key === undefined && keyring === undefined && passphraseFile === undefined) return undefined;
  if (key === undefined || keyring === undefined || passphraseFile === undefined)
    throw new ToolchainError('To sign, set --key, --keyring and --passphrase-file.');
  for (const file of [keyring, passphraseFile])
    if (!existsSync(file)) throw new ToolchainError(`${file} does not exist.`);
  return {
    name: key,
    keyring: path.resolve(keyring),
    passphraseFile: path.resolve(passphraseFile),
  };
}

/** Writes FILE.asc, a detached signature. The user's own GnuPG stays as it is. */
export async function signFile(file: string, key: SigningKey): Promise<void> {
  await ensurePrerequisites(SIGNING_PREREQUISITES);
  const home = mkdtempSync(path.join(tmpdir(), 'gpg-'));
  const unlock = ['--pinentry-mode', 'loopback', '--passphrase-file', key.passphraseFile];
  try {
    await gpg(home, [...unlock, '--import', key.keyring]);
    const sign = ['--local-user', key.name, '--armor', '--yes', '--detach-sign', file];
    await gpg(home, [...unlock, ...sign]);
  } finally {
    await runCommand('gpgconf', ['--homedir', home, '--kill', 'all']);
    rmSync(home, { recursive: true, force: true });
  }
}

async function gpg(home: string, args: readonly string[]): Promise<void> {
  await mustRun('gpg', ['--homedir', home, '--batch', ...args]);
}

/** The flags that name a key, for Helm and for the commands of this package. */
export function keyFlags({ name, keyring, passphraseFile }: SigningKey): string[] {
  return ['--key', name, '--keyring', keyring, '--passphrase-file', passphraseFile];
}
