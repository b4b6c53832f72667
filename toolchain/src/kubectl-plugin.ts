import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { mustRun } from './command.js';
import { runMain } from './errors.js';
import { REPOSITORY } from './repository.js';
import { productVersion } from './version.js';

const SOURCES = path.join(REPOSITORY, 'kubectl-plugin');
const OUTPUT = path.join(REPOSITORY, 'build', 'kubectl-plugin');
/** `kubectl gpu-usage` looks for this name, `kubectl gpu usage` for the other one. */
const PROGRAM = 'kubectl-gpu_usage';
const LINK = 'kubectl-gpu-usage';
/** The suffix makes Node load it as CommonJS, independent of any package.json. */
const SCRIPT = 'kubectl-gpu_usage.cjs';
const COMPLETION = 'kubectl_complete-gpu_usage';
/** Marker that Node replaces when a program is embedded (single executable application). */
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2';
const RELEASES = 'https://github.com/nvidia-virtual/nvidia-virtual/releases/download';

/**
 * Creates build/kubectl-plugin/: the plugin as a standalone executable for Linux on amd64, as a
 * script for Node on other systems, the archives for krew, and krew's manifest. Argument: URL
 * under which the archives are published, without the version.
 */
await runMain(async () => {
  rmSync(OUTPUT, { recursive: true, force: true });
  mkdirSync(OUTPUT, { recursive: true });
  const version = productVersion();
  await makeScript();
  await makeProgram();
  for (const file of [path.join('kubectl-plugin', 'krew', COMPLETION), 'LICENSE'])
    copyFileSync(path.join(REPOSITORY, file), place(path.basename(file)));
  const archives = {
    program: `gpu-usage-v${version}-linux-amd64.tar.gz`,
    script: `gpu-usage-v${version}-node.tar.gz`,
  };
  await makeArchive(archives.program, PROGRAM);
  await makeArchive(archives.script, SCRIPT);
  writeManifest(version, archives, process.argv[2] ?? RELEASES);
  for (const file of [PROGRAM, SCRIPT, ...Object.values(archives)])
    console.log(`${(statSync(place(file)).size / 1e6).toFixed(1)} MB  ${place(file)}`);
  return 0;
});

/** Bundles the plugin into one script for Node. */
async function makeScript(): Promise<void> {
  const entry = path.join(SOURCES, 'dist', 'main.js');
  const options = [
    '--bundle',
    '--platform=node',
    '--target=node20',
    '--format=cjs',
    '--minify',
    '--banner:js=#!/usr/bin/env node',
  ];
  await mustRun(tool('esbuild'), [entry, ...options, `--outfile=${place(SCRIPT)}`]);
  chmodSync(place(SCRIPT), 0o755);
}

/** Embeds the script into a copy of Node. */
async function makeProgram(): Promise<void> {
  const configuration = place('sea.json');
  writeFileSync(
    configuration,
    JSON.stringify({
      main: place(SCRIPT),
      output: place('program.blob'),
      disableExperimentalSEAWarning: true,
    }),
  );
  await mustRun(process.execPath, ['--experimental-sea-config', configuration]);
  copyFileSync(process.execPath, place(PROGRAM));
  chmodSync(place(PROGRAM), 0o755);
  // Removes Node's debug symbols.
  await mustRun('strip', [place(PROGRAM)]);
  await mustRun(tool('postject'), [
    place(PROGRAM),
    'NODE_SEA_BLOB',
    place('program.blob'),
    '--sentinel-fuse',
    FUSE,
  ]);
  symlinkSync(PROGRAM, place(LINK));
}

/** Creates a reproducible archive. */
async function makeArchive(name: string, plugin: string): Promise<void> {
  const same = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner'];
  await mustRun('tar', [
    ...same,
    '-C',
    OUTPUT,
    '-I',
    'gzip -n',
    '-cf',
    place(name),
    plugin,
    COMPLETION,
    'LICENSE',
  ]);
}

function writeManifest(
  version: string,
  archives: Readonly<Record<string, string>>,
  releases: string,
): void {
  const values: Record<string, string> = { version };
  for (const [name, archive] of Object.entries(archives)) {
    values[`${name}.uri`] = `${releases}/v${version}/${archive}`;
    values[`${name}.sha256`] = createHash('sha256')
      .update(readFileSync(place(archive)))
      .digest('hex');
  }
  const template = readFileSync(path.join(SOURCES, 'krew', 'gpu-usage.yaml'), 'utf8');
  const lines = template.split('\n').filter((line) => !line.startsWith('#'));
  const text = lines
    .join('\n')
    .replaceAll(/\{\{([\w.]+)\}\}/g, (_, name: string) => values[name] as string);
  writeFileSync(place('gpu-usage.yaml'), text);
}

function place(file: string): string {
  return path.join(OUTPUT, file);
}

function tool(name: string): string {
  return path.join(REPOSITORY, 'node_modules', '.bin', name);
}
