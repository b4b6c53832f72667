import { mkdtempSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { kubernetesTool } from '@nvidia-virtual/toolchain/kubernetes-tools';
import { parse } from 'yaml';
import { run } from './scene.js';

/** The part of krew's manifest for one platform. */
interface KrewPlatform {
  readonly selector: { readonly matchLabels: { readonly os: string; readonly arch: string } };
  readonly uri: string;
  readonly bin: string;
}

export function readPlatforms(manifest: string): readonly KrewPlatform[] {
  return (parse(readFileSync(manifest, 'utf8')) as { spec: { platforms: KrewPlatform[] } }).spec
    .platforms;
}

/**
 * `krew install`, as on a machine of that platform, from the archive of a release.
 * @param built directory of manifest and archives
 * @param into directory of a new krew home
 * @returns krew's directory for PATH
 */
export async function install(
  { uri, selector }: KrewPlatform,
  built: string,
  into: string,
): Promise<string> {
  const home = mkdtempSync(path.join(into, 'krew-'));
  const { os, arch } = selector.matchLabels;
  const from = [
    '--manifest',
    path.join(built, 'gpu-usage.yaml'),
    '--archive',
    path.join(built, path.basename(uri)),
  ];
  const { status, errors } = await run(kubernetesTool('krew'), ['install', ...from], '', {
    KREW_ROOT: home,
    KREW_OS: os,
    KREW_ARCH: arch,
    HOME: into,
  });
  if (status !== 0) throw new Error(errors);
  return path.join(home, 'bin');
}
