import { ApiServer } from '@nvidia-virtual/kubernetes/api-server';
import { type Command, Option } from 'commander';
import { type Revision, refuseWhileGpusAreUsed } from './gpu-pods.js';
import { checkInstallation, type Extent } from './install-check.js';
import { finishUninstall } from './node-cleaning.js';
import { provideRedisPassword } from './redis-password.js';

interface Place {
  readonly namespace: string;
  readonly kubeconfig?: string;
}

/** What the chart runs around an installation. A failure is thrown, and its message is the sentence for whoever runs Helm. */
export function addReleaseCommands(program: Command): void {
  const command = (name: string, description: string) =>
    program
      .command(name)
      .description(description)
      .requiredOption('--namespace <name>', 'namespace of the release')
      .option('--kubeconfig <path>', "how the API server is reached (default: the pod's service account)");
  addRedisPassword(command);
  addInstallCheck(command);
  addUninstallCheck(command);
  addFinishUninstall(command);
}

type MakeCommand = (name: string, description: string) => Command;

function addRedisPassword(command: MakeCommand): void {
  command('redis-password', 'lets Redis have the password of a Secret, and makes one there first where there is none')
    .requiredOption('--secret <name>', 'the Secret')
    .requiredOption('--key <key>', 'under which the password is in it')
    .requiredOption('--configuration <path>', 'the configuration file that Redis is to read')
    .option('--make', 'make a password where there is none', false)
    .action((flags: Place & { secret: string; key: string; configuration: string; make: boolean }) =>
      withApi(flags, (api) => provideRedisPassword({ api, ...flags })),
    );
}

function addInstallCheck(command: MakeCommand): void {
  command('check-install', 'waits until Kubernetes has let our pods in, and fails with the reason where it does not')
    .requiredOption('--release <name>', 'the release')
    .addOption(
      new Option('--extent <extent>', 'wait until pods are made, or until they are ready').choices(['made', 'ready']).default('made'),
    )
    .option('--patience <seconds>', 'how long', '60')
    .action((flags: Place & { release: string; extent: Extent; patience: string }) =>
      withApi(flags, (api) => checkInstallation({ api, ...flags, patience: milliseconds(flags.patience) })),
    );
}

function addUninstallCheck(command: MakeCommand): void {
  command('check-uninstall', 'fails while pods have a part of a GPU')
    .requiredOption('--release <name>', 'the release')
    .requiredOption('--revision <number>', 'of the release, as it is uninstalled')
    .option('--with-running-pods', 'let them lose it', false)
    .action(async (flags: Place & Revision & { withRunningPods: boolean }) => {
      if (!flags.withRunningPods) await withApi(flags, (api) => refuseWhileGpusAreUsed(api, flags));
    });
}

function addFinishUninstall(command: MakeCommand): void {
  command('finish-uninstall', 'waits until the nodes are clean, and removes what no chart can')
    .requiredOption('--served-by <name>', 'the DaemonSet that served the nodes; nothing is removed while it is there')
    .option('--daemon-set <name>', 'whose pods clean the nodes (default: nobody does)')
    .option('--patience <seconds>', 'how long', '180')
    .option('--lease <names...>', 'Leases to remove', [])
    .option('--job <names...>', 'Jobs to remove', [])
    .option('--pod <names...>', 'pods to remove', [])
    .action((flags: Place & { servedBy: string; daemonSet?: string; patience: string; lease: string[]; job: string[]; pod: string[] }) =>
      withApi(flags, (api) => {
        const say = (sentence: string) => process.stdout.write(`${sentence}\n`);
        const leftovers = { leases: flags.lease, jobs: flags.job, pods: flags.pod };
        return finishUninstall({ api, ...flags, leftovers, patience: milliseconds(flags.patience), say });
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

function milliseconds(seconds: string): number {
  return Number(seconds) * 1000;
}
