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
import { runCommand } from './command.js';
import { runMain, ToolchainError } from './errors.js';
import { REPOSITORY } from './repository.js';

const SOURCES = path.join(REPOSITORY, 'kubectl-plugin');
const OUTPUT = path.join(REPOSITORY, 'build', 'kubectl-plugin');
/** `kubectl gpu-usage` looks for this name, `kubectl gpu usage` for the other one. */
const PROGRAM = 'kubectl-gpu_usage';
const LINK = 'kubectl-gpu-usage';
/** Its name tells Node what it is, whatever package.json lies above it. */
const SCRIPT = 'kubectl-gpu_usage.cjs';
const COMPLETION = 'kubectl_complete-gpu_usage';
/** By which Node finds out that a program is in it. */
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2';
const RELEASES = 'https://github.com/nvidia-virtual/nvidia-virtual/releases/download';

/**
 * Makes build/kubectl-plugin/: the plugin as one file that needs nothing beside it, for Linux on
 * amd64, and as one that Node runs anywhere else; the archives that krew installs, and its
 * manifest. Argument: where archives are published, for the manifest; the version is put behind it.
 */
await runMain(async () => {
  rmSync(OUTPUT, { recursive: true, force: true });
  mkdirSync(OUTPUT, { recursive: true });
  const { version } = JSON.parse(readFileSync(path.join(SOURCES, 'package.json'), 'utf8')) as {
    version: string;
  };
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

/** The program and all that it imports, which whoever has Node runs as it is. */
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
  await run(tool('esbuild'), [entry, ...options, `--outfile=${place(SCRIPT)}`]);
  chmodSync(place(SCRIPT), 0o755);
}

/** Node itself, with the program in a section of its own. */
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
  await run(process.execPath, ['--experimental-sea-config', configuration]);
  copyFileSync(process.execPath, place(PROGRAM));
  chmodSync(place(PROGRAM), 0o755);
  // Debug symbols of Node, which nobody needs here.
  await run('strip', [place(PROGRAM)]);
  await run(tool('postject'), [
    place(PROGRAM),
    'NODE_SEA_BLOB',
    place('program.blob'),
    '--sentinel-fuse',
    FUSE,
  ]);
  symlinkSync(PROGRAM, place(LINK));
}

/** The same bytes whenever it is made of the same program. */
async function makeArchive(name: string, plugin: string): Promise<void> {
  const same = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner'];
  await run('tar', [
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

async function run(command: string, args: readonly string[]): Promise<void> {
  const { status, output } = await runCommand(command, args);
  if (status !== 0) throw new ToolchainError(`\`${command} ${args.join(' ')}\` failed:\n${output}`);
}
