import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { type CommandResult, runCommand } from '@nvidia-virtual/toolchain/command';

interface ClusterOptions {
  /** Path of a kubeconfig with an administrator's rights. */
  readonly kubeconfig: string;
  /** The node that runs the product. */
  readonly nodeName: string;
  /** For files of the test; exists already. */
  readonly directory: string;
  /** Path or name of the program. */
  readonly kubectl: string;
  readonly helm: string;
  /** Values of the chart, in addition to those of every test. */
  readonly values?: Readonly<Record<string, string>>;
}

/** A Kubernetes cluster in which the test is the administrator. */
export class Cluster {
  readonly kubeconfig: string;
  readonly nodeName: string;
  readonly directory: string;
  readonly kubectlProgram: string;
  readonly values: Readonly<Record<string, string>>;
  readonly api: ApiServer;
  readonly #helm: string;
  #files = 0;

  constructor({ kubeconfig, nodeName, directory, kubectl, helm, values = {} }: ClusterOptions) {
    this.kubeconfig = kubeconfig;
    this.nodeName = nodeName;
    this.directory = directory;
    this.kubectlProgram = kubectl;
    this.values = values;
    this.api = ApiServer.load(kubeconfig);
    this.#helm = helm;
  }

  /** Runs kubectl with these arguments. @throws Error with kubectl's message */
  async kubectl(...args: string[]): Promise<string> {
    return must('kubectl', args, await this.tryKubectl(args));
  }

  /** @param kubeconfig of another user; default: the administrator's */
  tryKubectl(args: readonly string[], kubeconfig = this.kubeconfig): Promise<CommandResult> {
    return runCommand(this.kubectlProgram, ['--kubeconfig', kubeconfig, ...args]);
  }

  /** @throws Error with helm's message */
  async helm(...args: string[]): Promise<string> {
    return must('helm', args, await this.tryHelm(args));
  }

  tryHelm(args: readonly string[]): Promise<CommandResult> {
    const home = path.join(this.directory, 'helm');
    const env = {
      ...process.env,
      HELM_CACHE_HOME: home,
      HELM_CONFIG_HOME: home,
      HELM_DATA_HOME: home,
    };
    return runCommand(this.#helm, ['--kubeconfig', this.kubeconfig, ...args], { env });
  }

  /** kubectl apply. */
  async apply(...objects: readonly object[]): Promise<void> {
    await this.kubectl('apply', '-f', this.write(objects));
  }

  /** A file with these objects, for kubectl. */
  write(objects: readonly object[]): string {
    const file = path.join(this.directory, `objects-${++this.#files}.json`);
    writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }));
    return file;
  }

  /** A kubeconfig that impersonates another user. @returns its path */
  async kubeconfigAs(user: string, namespace: string): Promise<string> {
    const view = ['config', 'view', '--raw', '--flatten', '--minify', '-o', 'json'];
    const config = JSON.parse(await this.kubectl(...view)) as Kubeconfig;
    for (const each of config.users) each.user = { ...each.user, as: user };
    for (const each of config.contexts) each.context = { ...each.context, namespace };
    const file = path.join(this.directory, `kubeconfig-${user}.json`);
    writeFileSync(file, JSON.stringify(config), { mode: 0o600 });
    return file;
  }
}

interface Kubeconfig {
  readonly users: { user: object }[];
  readonly contexts: { context: object }[];
}

function must(command: string, args: readonly string[], { status, output }: CommandResult): string {
  if (status !== 0) throw new Error(`\`${command} ${args.join(' ')}\` failed:\n${output}`);
  return output;
}
