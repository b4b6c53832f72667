import { ApiError, ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { ProxyError } from '@nvidia-virtual/service/errors';
import { Command, Option } from 'commander';
import { ReleaseError } from './errors.js';
import { type Revision, refuseWhileGpusAreUsed } from './gpu-pods.js';
import { checkInstallation, type Extent } from './install-check.js';
import { finishUninstall } from './node-cleaning.js';
import { checkNodes } from './preflight.js';
import { provideRedisPassword } from './redis-password.js';

interface Place {
  readonly namespace: string;
  readonly kubeconfig?: string;
}

/**
 * @returns the exit status: 0 done, 1 failed, 2 wrong usage. The reason is on stderr for the user
 * of Helm.
 */
export async function execute(argv: readonly string[]): Promise<number> {
  const program = new Command('nvidia-virtual-release-hooks').description(
    'Runs once when the chart is installed, upgraded, tested or uninstalled.',
  );
  const command: MakeCommand = (name, description) =>
    program
      .command(name)
      .description(description)
      .requiredOption('--namespace <name>', 'namespace of the release')
      .option(
        '--kubeconfig <path>',
        "how the API server is reached (default: the pod's service account)",
      );
  addRedisPassword(command);
  addInstallCheck(command);
  addNodeCheck(command);
  addUninstallCheck(command);
  addFinishUninstall(command);
  try {
    await program.parseAsync(argv);
    return 0;
  } catch (error) {
    const known =
      error instanceof ReleaseError || error instanceof ApiError || error instanceof ProxyError;
    if (!known) throw error;
    process.stderr.write(`${program.name()}: ${error.message}\n`);
    return error instanceof ProxyError ? error.exitStatus : 1;
  }
}

type MakeCommand = (name: string, description: string) => Command;

function addRedisPassword(command: MakeCommand): void {
  command('redis-password', 'writes the password in a Secret into the configuration of Redis')
    .requiredOption('--secret <name>', 'the Secret')
    .requiredOption('--key <key>', 'under which the password is in it')
    .requiredOption('--configuration <path>', 'the configuration file that Redis is to read')
    .option('--make', 'make the password if the Secret has none', false)
    .action(
      (flags: Place & { secret: string; key: string; configuration: string; make: boolean }) =>
        withApi(flags, (api) => provideRedisPassword({ api, ...flags })),
    );
}

function addInstallCheck(command: MakeCommand): void {
  command(
    'check-install',
    "waits until Kubernetes admits the release's pods; fails with the reason if it refuses them",
  )
    .requiredOption('--release <name>', 'the release')
    .addOption(
      new Option('--extent <extent>', 'wait until pods exist, or until they are ready')
        .choices(['made', 'ready'])
        .default('made'),
    )
    .option('--patience <seconds>', 'timeout', '60')
    .action((flags: Place & { release: string; extent: Extent; patience: string }) =>
      withApi(flags, (api) =>
        checkInstallation({ api, ...flags, patience: milliseconds(flags.patience) }),
      ),
    );
}

function addNodeCheck(command: MakeCommand): void {
  command('check-nodes', 'fails with one list of what nodes lack')
    .requiredOption('--release <name>', 'the release')
    .requiredOption('--daemon-set <name>', 'DaemonSet whose pods check their nodes; is removed')
    .option('--patience <seconds>', 'timeout', '120')
    .action((flags: Place & { release: string; daemonSet: string; patience: string }) =>
      withApi(flags, (api) =>
        checkNodes({ api, ...flags, patience: milliseconds(flags.patience), say }),
      ),
    );
}

function addUninstallCheck(command: MakeCommand): void {
  command('check-uninstall', 'fails while pods on nodes have slots of a GPU')
    .requiredOption('--release <name>', 'the release')
    .requiredOption('--revision <number>', 'revision that is being uninstalled')
    .option('--with-running-pods', 'allow it; the pods lose their slots', false)
    .action(async (flags: Place & Revision & { withRunningPods: boolean }) => {
      if (!flags.withRunningPods) await withApi(flags, (api) => refuseWhileGpusAreUsed(api, flags));
    });
}

function addFinishUninstall(command: MakeCommand): void {
  command(
    'finish-uninstall',
    'waits until the nodes are clean, then removes objects that Helm does not know',
  )
    .requiredOption(
      '--served-by <name>',
      'DaemonSet that served the nodes; nothing is removed while it exists',
    )
    .option('--daemon-set <name>', 'DaemonSet whose pods clean the nodes (default: none)')
    .option('--patience <seconds>', 'timeout', '180')
    .option('--lease <names...>', 'Leases to remove', [])
    .option('--job <names...>', 'Jobs to remove', [])
    .option('--preflight <names...>', 'DaemonSets to remove, which checked the nodes', [])
    .option('--pod <names...>', 'pods to remove', [])
    .action(
      (
        flags: Place & {
          servedBy: string;
          daemonSet?: string;
          patience: string;
          lease: string[];
          job: string[];
          preflight: string[];
          pod: string[];
        },
      ) =>
        withApi(flags, (api) => {
          const leftovers = {
            leases: flags.lease,
            jobs: flags.job,
            daemonsets: flags.preflight,
            pods: flags.pod,
          };
          return finishUninstall({
            api,
            ...flags,
            leftovers,
            patience: milliseconds(flags.patience),
            say,
          });
        }),
    );
}

async function withApi(place: Place, use: (api: ApiServer) => Promise<void>): Promise<void> {
  const api = ApiServer.load(place.kubeconfig);
  try {
    await use(api);
  } finally {
    api.close();
  }
}

function say(sentence: string): void {
  process.stdout.write(`${sentence}\n`);
}

function milliseconds(seconds: string): number {
  return Number(seconds) * 1000;
}
