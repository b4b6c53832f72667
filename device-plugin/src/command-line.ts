import { hostname } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { flagsOf } from '@nvidia-virtual/service/configuration/flags';
import { loadOptions } from '@nvidia-virtual/service/configuration/load';
import type { Schema } from '@nvidia-virtual/service/configuration/option';
import type { EndSignal } from '@nvidia-virtual/service/end-signal';
import { ProxyError } from '@nvidia-virtual/service/errors';
import { Command, CommanderError } from 'commander';
import { PluginError } from './errors.js';
import { writeNodeReport } from './node-report.js';
import { CHECK_OPTIONS, INSTALL_OPTIONS, REMOVE_OPTIONS, SERVE_OPTIONS } from './options.js';
import { PluginService } from './plugin-service.js';
import { removeFromNode } from './removal.js';
import { labelForContainers } from './selinux.js';
import { installVersion } from './versions.js';

const NAME = 'nvidia-virtual-device-plugin';
const LONG_MS = 3_600_000;
const USAGE_ERROR = 2;
const OWN_FAILURE = 125;

type Flags = Readonly<Record<string, unknown>>;

/** Carries out one command line. Resolves to the exit status; never ends the process itself. */
export async function execute(argv: readonly string[], endSignal: EndSignal): Promise<number> {
  try {
    await commandLine(endSignal).parseAsync([...argv]);
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE_ERROR;
    process.stderr.write(`${NAME}: ${(error as Error).message}\n`);
    return error instanceof ProxyError ? error.exitStatus : OWN_FAILURE;
  }
}

function commandLine(endSignal: EndSignal): Command {
  const program = new Command(NAME)
    .description(
      'Offers the GPUs of this node to the kubelet, divided into slots of nvidia-virtual/gpu. ' +
        'It runs beside gpu-proxy, which serves them.',
    )
    .addHelpText(
      'after',
      '\nEvery option is also an environment variable: --kubelet-root is ' +
        'NVIDIA_VIRTUAL_KUBELET_ROOT.',
    )
    .enablePositionalOptions()
    .exitOverride()
    .action((flags: Flags) => serve(flags, endSignal));
  const install = program
    .command('install')
    .description(
      'install this build for containers, and print where; a serving plugin does the same',
    )
    .action((flags: Flags) => {
      const { installation, versions } = loadOptions(INSTALL_OPTIONS, {
        flags,
        environment: process.env,
      });
      // The directory of the versions is beside that of the state, in one of ours.
      labelForContainers(path.dirname(versions));
      process.stdout.write(`${installVersion(installation, versions).directory}\n`);
    });
  const check = program
    .command('check')
    .description('check whether this node can serve GPUs, and write what it lacks into a file')
    .action((flags: Flags) => writeReport(flags));
  const remove = program
    .command('remove')
    .description(
      'remove all files of nvidia-virtual from this node, and end their processes; ' +
        'device plugin and gpu-proxy must have ended',
    )
    .action((flags: Flags) => removeUnlessServed(flags));
  addOptions(program, SERVE_OPTIONS);
  addOptions(check, CHECK_OPTIONS);
  addOptions(remove, REMOVE_OPTIONS);
  addOptions(install, INSTALL_OPTIONS);
  return program;
}

async function serve(flags: Flags, endSignal: EndSignal): Promise<void> {
  const service = new PluginService(
    loadOptions(SERVE_OPTIONS, { flags, environment: process.env }),
  );
  await service.start();
  await service.end(await endSignal.first());
}

function writeReport(flags: Flags): Promise<void> {
  const options = loadOptions(CHECK_OPTIONS, { flags, environment: process.env });
  return writeNodeReport({ ...options, node: options.node ?? hostname() });
}

async function removeUnlessServed(flags: Flags): Promise<void> {
  const {
    daemonSet,
    namespace,
    node = hostname(),
    kubeconfig,
    ...options
  } = loadOptions(REMOVE_OPTIONS, { flags, environment: process.env });
  const removal = { ...options, patience: options.patience / 1000 };
  if (daemonSet === undefined) return removeFromNode(removal);
  // Loaded on demand: the Kubernetes client takes a second to load.
  const { ApiServer } = await import('@nvidia-virtual/kube-common/api-server');
  const { Release } = await import('./release.js');
  const release = new Release({ api: ApiServer.load(kubeconfig), namespace, daemonSet, node });
  if (!(await release.lives()))
    return removeFromNode({ ...removal, whoElse: () => release.whoIsHere() });
  process.stderr.write(
    `${NAME}: ${new PluginError('RELEASE_LIVES', { node, daemonSet, namespace }).message}\n`,
  );
  // Do not exit: the container would be restarted, and could check again while the DaemonSet is
  // being replaced.
  for (;;) await sleep(LONG_MS);
}

function addOptions(command: Command, schema: Schema): void {
  for (const flag of flagsOf(schema)) command.addOption(flag);
}
