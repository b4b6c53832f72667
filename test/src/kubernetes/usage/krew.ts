import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { parse } from 'yaml';
import { run } from './scene.js';

/** What a manifest of krew says for one platform. */
export interface KrewPlatform {
  readonly selector: { readonly matchLabels: { readonly os: string; readonly arch: string } };
  readonly uri: string;
  readonly sha256: string;
  readonly bin: string;
  readonly files: readonly { readonly from: string; readonly to: string }[];
}

export function readPlatforms(manifest: string): readonly KrewPlatform[] {
  return (parse(readFileSync(manifest, 'utf8')) as { spec: { platforms: KrewPlatform[] } }).spec.platforms;
}

/**
 * As krew does it: the archive must be the one that is meant, the files that the manifest lists are taken from it, and a link by the plugin's
 * name leads to its program.
 * @param archives where they are, instead of where the manifest says that they are published
 * @returns a directory for PATH
 */
export async function install({ uri, sha256, bin, files }: KrewPlatform, archives: string, into: string): Promise<string> {
  const archive = path.join(archives, path.basename(uri));
  const sum = createHash('sha256').update(readFileSync(archive)).digest('hex');
  if (sum !== sha256) throw new Error(`${archive} has the sha256 ${sum}, and the manifest says ${sha256}`);
  const [unpacked, store, linked] = ['unpacked', 'store', 'bin'].map((name) => mkdtempSync(path.join(into, name))) as [
    string,
    string,
    string,
  ];
  const { status, errors } = await run('tar', ['-xzf', archive, '-C', unpacked]);
  if (status !== 0) throw new Error(errors);
  for (const { from, to } of files) {
    mkdirSync(path.join(store, to), { recursive: true });
    copyFileSync(path.join(unpacked, from), path.join(store, to, path.basename(from)));
  }
  symlinkSync(path.join(store, bin), path.join(linked, 'kubectl-gpu_usage'));
  return linked;
}
