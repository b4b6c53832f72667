import path from 'node:path';
import { runCommand } from '@nvidia-virtual/toolchain/command';
import { readNeeds, reasonsAgainst } from '@nvidia-virtual/toolchain/elf';
import { copyNativeParts } from '@nvidia-virtual/toolchain/images/context';
import { buildNativeParts } from '@nvidia-virtual/toolchain/images/product-images';
import { PORTABLE_PARTS } from '@nvidia-virtual/toolchain/native-parts';
import { fetchZig } from '@nvidia-virtual/toolchain/portable-build';
import { showProgress } from '@nvidia-virtual/toolchain/progress';
import { GPU_PROXY, REPOSITORY } from '../paths.js';
import { Tally } from '../tally.js';
import { oldUserland } from './old-userland.js';

/** 2012: no CUDA runs on older systems. */
const OLDEST = [2, 17] as const;
const INSTALLATION = path.join(REPOSITORY, 'build', 'portable');
const TARGET = `x86_64-linux-gnu.${OLDEST.join('.')}`;

process.exitCode = await main();

/** The release build runs on other machines: it must load with an older C library than ours. */
async function main(): Promise<number> {
  const tally = new Tally();
  const progress = showProgress('Portable build');
  const builds = await buildNativeParts(progress);
  progress.finish();
  // They may need each other.
  const parts = Object.keys(PORTABLE_PARTS);
  const own = parts.map((part) => path.basename(part));
  for (const part of parts) {
    const { libraries, versions } = await readNeeds(path.join(builds.portable, part));
    const foreign = libraries.filter((library) => !own.includes(library));
    tally.judge(
      `${part} needs no glibc newer than ${OLDEST.join('.')}`,
      reasonsAgainst({ libraries: foreign, versions }, OLDEST),
    );
  }
  await copyNativeParts(INSTALLATION, builds);
  for (const { name, loader, libraries } of await oldUserland((line) => console.log(line))) {
    const output = await runOn(loader, libraries);
    tally.judge(
      `a program of ${name} computes through it`,
      /^right, with glibc/m.test(output) ? [] : [output],
    );
  }
  return tally.close();
}

/**
 * Runs it with the loader and the C library of another system, and with the interposer and the
 * worker of this build.
 */
async function runOn(loader: string, libraries: string): Promise<string> {
  const probe = path.join(REPOSITORY, 'build', 'portable-probe');
  const source = path.join(REPOSITORY, 'test', 'portable', 'probe.c');
  const compiled = await runCommand(await fetchZig(), [
    'cc',
    '-target',
    TARGET,
    '-O1',
    source,
    '-o',
    probe,
    '-ldl',
  ]);
  if (compiled.status !== 0) return compiled.output;
  const command = [
    loader,
    '--library-path',
    `${libraries}:${path.join(INSTALLATION, 'lib')}`,
    probe,
  ];
  const args = [GPU_PROXY, 'run', '--backend', 'simulated', '--memory', '512MiB', '--', ...command];
  return (
    await runCommand(process.execPath, args, {
      env: { ...process.env, NVIDIA_VIRTUAL_BUILD: INSTALLATION },
    })
  ).output;
}
