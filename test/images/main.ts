import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import type { ContainerAllocateResponse } from '@nvidia-virtual/device-plugin/protocol';
import { NodeUnderTest } from '@nvidia-virtual/device-plugin/testing/node-under-test';
import { eventually } from '@nvidia-virtual/service/testing/eventually';
import {
  ensurePrerequisites,
  KUBERNETES_PREREQUISITES,
  TEST_PREREQUISITES,
} from '@nvidia-virtual/toolchain/prerequisites';
import type { Outcome } from '../child.js';
import { Tally } from '../tally.js';
import { buildInstallation, buildStage, prepareImages } from './build.js';
import { ImageContainer } from './container.js';
import { commandOf, IMAGES, type Image } from './matrix.js';

const HELP = `Tests which libcuda.so.1 programs load in images with the layouts of public ones.
runc runs them with the result of the device plugin's Allocate. Root only.
  --only NAMES   only these images, separated by commas
  --no-preload   as with \`--preload false\` of the device plugin: shows which images need it
Images: ${[...new Set(IMAGES.map(({ name }) => name))].join(', ')}`;

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    'no-preload': { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

/** Where the loader of Debian finds the product's libraries. */
const LIBRARIES = '/usr/lib/x86_64-linux-gnu';

if (values.help) console.log(HELP);
else process.exitCode = await main();

async function main(): Promise<number> {
  await ensurePrerequisites([...TEST_PREREQUISITES, ...KUBERNETES_PREREQUISITES]);
  const tally = new Tally();
  const directory = mkdtempSync(path.join(tmpdir(), 'images-'));
  const node = new NodeUnderTest({ installation: await buildInstallation() });
  try {
    const answer = await allocate(node);
    await prepareImages();
    const only = values.only?.split(',');
    for (const image of IMAGES)
      if (only === undefined || only.includes(image.name))
        await judge(image, { tally, answer, directory });
    judgeHost(tally, answer);
  } finally {
    await node.remove();
    rmSync(directory, { recursive: true, force: true });
  }
  return tally.close();
}

/** What a container with one slot gets. */
async function allocate(node: NodeUnderTest): Promise<ContainerAllocateResponse> {
  await node.kubelet.start();
  node.startPlugin(values['no-preload'] ? ['--preload', 'false'] : []);
  await node.startProxy();
  await eventually(() => {
    if (node.kubelet.healthy.length === 0) throw new Error('the plugin offers no slot');
  });
  return node.kubelet.allocate(node.kubelet.healthy.slice(0, 1));
}

interface Judging {
  readonly tally: Tally;
  readonly answer: ContainerAllocateResponse;
  readonly directory: string;
}

async function judge(image: Image, { tally, answer, directory }: Judging): Promise<void> {
  const begin = performance.now();
  const { name, checks, expected, readOnlyRoot = false } = image;
  const names = answer.mounts
    .map(({ containerPath }) => containerPath)
    .filter((file) => path.dirname(file) === LIBRARIES)
    .map((file) => path.basename(file));
  const options = { image: await buildStage(name), answer, directory, readOnlyRoot };
  const container = await ImageContainer.create(options);
  try {
    for (const check of checks) {
      const command = commandOf(check, names);
      const outcome = await container.run(command);
      const what = `${name}${readOnlyRoot ? ', read-only' : ''}: ${command.join(' ')}`;
      const problems = expected
        ? unexpected(outcome, expected)
        : notOurs(outcome, check.prints ?? names, answer);
      tally.judge(what, problems);
    }
  } finally {
    await container.remove();
  }
  console.log(`${name}: ${((performance.now() - begin) / 1000).toFixed(1)} s`);
}

/** What a program that is said to load another library, or none, did instead. */
function unexpected({ stdout }: Outcome, expected: 'other' | RegExp): string[] {
  const pattern = expected === 'other' ? / \/usr\/local\/cuda\/compat\/libcuda\.so\.1 / : expected;
  return pattern.test(stdout) ? [] : [`it does not print ${pattern}: ${stdout}`];
}

/** Compares files by inode, because their paths in an image may be links. */
function notOurs(
  { stdout, stderr, status }: Outcome,
  names: readonly string[],
  { mounts }: ContainerAllocateResponse,
): string[] {
  const lines = stdout.trim().split('\n');
  const problems = stderr === '' && status === 0 ? [] : [`status ${status}: ${stdout}${stderr}`];
  for (const name of names) {
    const file = name === '-lcuda' ? 'libcuda.so.1' : name;
    const ours = mounts.find(({ containerPath }) => containerPath === path.join(LIBRARIES, file));
    const { dev, ino } = statSync(ours?.hostPath ?? '');
    const line = lines.find((one) => one.startsWith(`${name} `)) ?? `${name} ! it is not printed`;
    if (!line.endsWith(` ${dev} ${ino}`)) problems.push(`not ours: ${line}`);
  }
  return problems;
}

/** The links of the hostile image name these files. */
function judgeHost(tally: Tally, { mounts }: ContainerAllocateResponse): void {
  const led = ['preload', 'library']
    .map((name) => `/tmp/nvidia-virtual-${name}`)
    .filter((file) => existsSync(file));
  tally.judge('no link of an image leads to the host', led);
  const changed = mounts.filter(({ hostPath }) => !existsSync(hostPath));
  tally.judge(
    'the mounted files are whole',
    changed.map(({ hostPath }) => hostPath),
  );
}
