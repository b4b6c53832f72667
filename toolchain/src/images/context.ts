import { chmodSync, cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { runCommand } from '../command.js';
import { ToolchainError } from '../errors.js';
import { ORDINARY_PARTS, PORTABLE_PARTS } from '../native-parts.js';
import { REPOSITORY } from '../repository.js';
import { bundle } from './bundle.js';
import { copyCriu } from './criu.js';

const PROGRAMS = 'usr/lib/nvidia-virtual';
/** Commands of each image, with the package that has the code. */
export const COMMANDS = {
  node: {
    'gpu-proxy': 'gpu-proxy',
    'nvidia-virtual-device-plugin': 'device-plugin',
  },
  control: {
    'nvidia-virtual-scheduler-ext': 'scheduler-ext',
    'nvidia-virtual-release-hooks': 'release-hooks',
    'nvidia-virtual-usage-api': 'usage-api',
  },
} as const;

/** Files that the device plugin mounts into containers, beside the libraries. */
const CONTAINER_FILES = path.join(REPOSITORY, 'device-plugin/container');

/** Directories of the builds of native-parts. */
export interface NativeBuilds {
  readonly portable: string;
  readonly ordinary: string;
}

/** Creates the build context for `images/NAME/Dockerfile` and returns its directory. */
export async function makeContext(
  name: keyof typeof COMMANDS,
  directory: string,
  builds: NativeBuilds,
): Promise<string> {
  const context = path.join(directory, name);
  const root = path.join(context, 'rootfs');
  rmSync(context, { recursive: true, force: true });
  mkdirSync(path.join(root, PROGRAMS), { recursive: true });
  await addCommands(root, COMMANDS[name]);
  if (name === 'node') {
    const installed = path.join(root, 'opt/nvidia-virtual');
    await copyNativeParts(installed, builds);
    await copyCriu(path.join(installed, 'criu'));
  }
  cpSync(path.join(REPOSITORY, 'LICENSE'), path.join(root, 'usr/share/doc/nvidia-virtual/LICENSE'));
  return context;
}

/** Adds commands in PATH, one bundle per package. */
async function addCommands(
  root: string,
  packages: Readonly<Record<string, string>>,
): Promise<void> {
  const entries = Object.values(packages).map((name) => [name, `${name}/dist/main.js`]);
  await bundle(Object.fromEntries(entries), path.join(root, PROGRAMS));
  // Makes Node load the bundles as ES modules.
  writeFileSync(path.join(root, PROGRAMS, 'package.json'), '{"type": "module"}\n');
  mkdirSync(path.join(root, 'usr/bin'), { recursive: true });
  for (const [command, name] of Object.entries(packages)) {
    writeFileSync(
      path.join(root, 'usr/bin', command),
      `#!/usr/bin/env node\nimport('/${PROGRAMS}/${name}.js');\n`,
      { mode: 0o755 },
    );
  }
}

/** Copies what is installed on the node into the layout of NVIDIA_VIRTUAL_BUILD. */
export async function copyNativeParts(
  directory: string,
  { portable, ordinary }: NativeBuilds,
): Promise<void> {
  for (const [build, parts] of [
    [portable, PORTABLE_PARTS],
    [ordinary, ORDINARY_PARTS],
  ] as const)
    for (const [part, place] of Object.entries(parts))
      await copyProgram(path.join(build, part), path.join(directory, place));
  cpSync(CONTAINER_FILES, path.join(directory, 'container'), { recursive: true });
}

/** Copies a program without debug symbols, which are two thirds of its size. */
async function copyProgram(from: string, to: string): Promise<void> {
  mkdirSync(path.dirname(to), { recursive: true });
  const { status, output } = await runCommand('strip', ['--strip-debug', '-o', to, from]);
  if (status !== 0) throw new ToolchainError(`${from} cannot be copied to ${to}:\n${output}`);
  chmodSync(to, 0o755);
}
