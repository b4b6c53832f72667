import { mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { mustRun } from '../command.js';
import { buildKubernetesTools, kubernetesTool } from '../kubernetes-tools.js';
import { REPOSITORY } from '../repository.js';
import { productVersion } from '../version.js';
import { keyFlags, type SigningKey } from './signing.js';

const CHART = path.join(REPOSITORY, 'charts', 'nvidia-virtual');

/** Writes the chart's archive, with a key also its provenance file. @returns path of the archive */
export async function packageChart(directory: string, key?: SigningKey): Promise<string> {
  const archive = path.join(directory, `nvidia-virtual-${productVersion()}.tgz`);
  mkdirSync(directory, { recursive: true });
  // Helm would push the signature of an earlier archive.
  rmSync(`${archive}.prov`, { force: true });
  const sign = key === undefined ? [] : ['--sign', ...keyFlags(key)];
  await helm(['package', CHART, '--destination', directory, ...sign]);
  return archive;
}

/**
 * Pushes the archive, and its provenance file if there is one, to `REGISTRY/nvidia-virtual`.
 * @returns name of the chart there
 */
export async function pushChart(
  archive: string,
  registry: string,
  plainHttp: boolean,
): Promise<string> {
  const place = `oci://${registry.replace(/\/$/, '')}`;
  await helm(['push', archive, place, ...(plainHttp ? ['--plain-http'] : [])]);
  return `${place}/nvidia-virtual:${productVersion()}`;
}

async function helm(args: readonly string[]): Promise<void> {
  await buildKubernetesTools(['helm'], (line) => console.log(line));
  await mustRun(kubernetesTool('helm'), args);
}
