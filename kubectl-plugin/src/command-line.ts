import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { PluginError } from './errors.js';

export const OUTPUTS = ['wide', 'json', 'yaml', 'name'] as const;
type Output = (typeof OUTPUTS)[number];
export const SORT_FIELDS = [
  'name',
  'memory',
  'time',
  'waiting',
  'efficiency',
  'slots',
  'state',
] as const;
export type SortField = (typeof SORT_FIELDS)[number];

/** The objects that the command shows. */
type Request =
  | { readonly what: 'pods' | 'nodes' | 'namespaces'; readonly name: undefined }
  | { readonly what: 'pod' | 'node'; readonly name: string }
  /** The name of a pod. */
  | { readonly what: 'suspend' | 'resume' | 'move'; readonly name: string | undefined }
  /** The name of a node, or of a file. */
  | { readonly what: 'drain' | 'undrain' | 'doctor' | 'bundle'; readonly name: string | undefined };

export interface Flags {
  readonly namespace?: string;
  readonly allNamespaces?: boolean;
  readonly selector?: string;
  readonly fieldSelector?: string;
  readonly watch?: boolean;
  readonly output?: Output;
  readonly headers: boolean;
  readonly sortBy?: SortField;
  readonly prometheus: string;
  readonly since: string;
  /** Index or UUID. */
  readonly gpu?: string;
  /** In milliseconds. */
  readonly timeout: number;
  /** In kubectl's format. */
  readonly requestTimeout: string;
}

export interface CommandLine {
  readonly request: Request;
  readonly flags: Flags;
  /** Flags for kubectl that choose cluster and user. */
  readonly connection: readonly string[];
}

const EXAMPLES = `
Examples:
  kubectl gpu-usage                     pods of the current namespace: quota and real use of \
memory and time
  kubectl gpu-usage -A -l app=train     pods of all namespaces with this label
  kubectl gpu-usage pod train-0         one pod, container by container
  kubectl gpu-usage nodes               each GPU: what it has, what is granted, used and free
  kubectl gpu-usage node gpu-7          one node: its GPUs, and the pods that share them
  kubectl gpu-usage --sort-by efficiency -A -o wide
                                        idle grants first
  kubectl gpu-usage namespaces --since 7d
                                        GPU-hours and GiB-hours of each namespace, from Prometheus
  kubectl gpu-usage -w -o wide          goes on, and prints a row whenever something changed
  kubectl gpu-usage suspend train-0     the CUDA calls of the pod wait, and its GPU is for others
  kubectl gpu-usage resume train-0      it goes on
  kubectl gpu-usage move train-0 --gpu 1
                                        it goes on, on another GPU of its node
  kubectl gpu-usage drain gpu-7 --gpu 0 the pods of the GPU move to others, and it gets no new ones
  kubectl gpu-usage doctor [NODE]       what is wrong, and the command that repairs it
  kubectl gpu-usage bundle [FILE]       writes an archive for support, without secrets
`;

/** @returns text to print instead, for --help and --version. @throws PluginError USAGE */
export function parseCommandLine(words: readonly string[], version: string): CommandLine | string {
  let shown = '';
  const command = makeCommand(version)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => (shown += text),
      writeErr: () => undefined,
    });
  try {
    command.parse(words, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return shown;
    throw new PluginError('USAGE', {
      reason: capitalized(error.message.replace(/^error: /, '').replace(/\.$/, '')),
    });
  }
  return {
    request: readRequest(command.args),
    flags: command.opts<Flags>(),
    connection: connectionArguments(command),
  };
}

export function makeCommand(version: string): Command {
  const command = new Command('kubectl gpu-usage')
    .description(
      'Shows the GPU resources that nvidia-virtual granted to pods, their usage, ' +
        'and the free capacity of each GPU.',
    )
    .usage(
      '[pods | pod NAME | nodes | node NAME | namespaces | suspend POD | resume POD | ' +
        'move POD --gpu GPU | ' +
        'drain NODE --gpu GPU | undrain NODE --gpu GPU | doctor [NODE] | bundle [FILE]] [flags]',
    )
    .argument('[words...]')
    .version(`kubectl-gpu_usage ${version}`, '--version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .addHelpText('after', EXAMPLES);
  for (const option of [...outputOptions(), ...connectionOptions()]) command.addOption(option);
  return command;
}

function outputOptions(): Option[] {
  return [
    new Option('-n, --namespace <name>', "namespace of the pods (default: the context's)"),
    new Option('-A, --all-namespaces', 'pods of all namespaces'),
    new Option(
      '-l, --selector <labels>',
      'only pods or nodes with these labels: key=value, key!=value, key in (a,b), key, !key',
    ),
    new Option(
      '--field-selector <fields>',
      'only pods or nodes with these fields: state=Waiting, node=NAME, metadata.name=NAME',
    ),
    new Option('-w, --watch', 'watch, and print changes'),
    new Option(
      '-o, --output <format>',
      'wide: more columns; json, yaml; name: names alone',
    ).choices(OUTPUTS),
    new Option('--no-headers', 'print no headings'),
    new Option(
      '--sort-by <field>',
      'sort by this field: largest first, except name, state and efficiency',
    ).choices(SORT_FIELDS),
    new Option(
      '--since <period>',
      'namespaces: the period up to now, such as 12h, 30d, 4w',
    ).default('30d'),
    new Option(
      '--prometheus <service>',
      'namespaces: the Prometheus to read, as NAMESPACE/SERVICE:PORT',
    ).default('monitoring/prometheus-operated:9090'),
    new Option(
      '--gpu <index|uuid>',
      'move: another GPU of the node; drain, undrain: a GPU of the node',
    ).argParser(gpuName),
    new Option(
      '--timeout <time>',
      'suspend, resume, move, drain: time for the node to follow, such as 30s, 2m; 0: do not wait',
    )
      .default(30_000, '30s')
      .argParser(milliseconds),
    new Option(
      '--request-timeout <time>',
      'timeout of each request: 5s, 1m; 0: no timeout',
    ).default('30s'),
  ];
}

/** kubectl's connection flags. Those that are set are passed on to kubectl. */
function connectionOptions(): Option[] {
  return [
    new Option(
      '--kubeconfig <file>',
      'path of the kubeconfig (default: the files in KUBECONFIG, else ~/.kube/config)',
    ),
    new Option('--context <name>', 'context of the kubeconfig'),
    new Option('--cluster <name>', 'cluster of the kubeconfig'),
    new Option('--user <name>', 'user of the kubeconfig'),
    new Option('-s, --server <url>', 'address of the API server'),
    new Option('--token <token>', 'bearer token'),
    new Option('--as <user>', 'impersonate this user'),
    new Option(
      '--as-group <group>',
      'impersonate a member of this group; may be repeated',
    ).argParser(append),
    new Option('--as-uid <uid>', 'impersonate the user with this UID'),
    new Option('--certificate-authority <file>', 'CA certificates to verify the API server (PEM)'),
    new Option('--client-certificate <file>', 'client certificate (PEM)'),
    new Option('--client-key <file>', 'private key of the client certificate (PEM)'),
    new Option('--tls-server-name <name>', 'name that the certificate of the API server must have'),
    new Option(
      '--insecure-skip-tls-verify',
      'do not verify the certificate of the API server (insecure)',
    ),
  ];
}

function connectionArguments(command: Command): string[] {
  return connectionOptions().flatMap((option) => {
    const value: unknown = command.getOptionValue(option.attributeName());
    const values = value === undefined ? [] : [value].flat();
    return values.map((one) => (one === true ? `${option.long}` : `${option.long}=${one}`));
  });
}

function readRequest(words: readonly string[]): Request {
  const [what = 'pods', name, ...more] = words;
  if (more.length > 0)
    throw new PluginError('USAGE', {
      reason: `"${more.join(' ')}" is too much: only one name is allowed`,
    });
  if (what === 'bundle') return { what, name };
  if (name?.includes('/'))
    throw new PluginError('USAGE', { reason: `"${name}" is not a name: it contains a slash` });
  if (what === 'doctor' || what === 'drain' || what === 'undrain') return { what, name };
  if (what === 'suspend' || what === 'resume' || what === 'move') return { what, name };
  if (NAMESPACES.includes(what)) {
    if (name === undefined) return { what: 'namespaces', name };
    throw new PluginError('USAGE', {
      reason: `"${name}" is too much: \`namespaces -n ${name}\` shows one namespace`,
    });
  }
  const kind = KINDS[what];
  if (kind === undefined)
    throw new PluginError('USAGE', {
      reason:
        `"${what}" must be pods, pod NAME, nodes, node NAME, namespaces, suspend, resume, move, ` +
        `drain, undrain, doctor or bundle (did you mean \`pod ${what}\`?)`,
    });
  return name === undefined ? { what: `${kind}s`, name } : { what: kind, name };
}

const NAMESPACES = ['namespaces', 'namespace', 'ns'];
const KINDS: Readonly<Record<string, 'pod' | 'node'>> = {
  pod: 'pod',
  pods: 'pod',
  po: 'pod',
  node: 'node',
  nodes: 'node',
  no: 'node',
};

function gpuName(text: string): string {
  if (/^(\d{1,4}|[A-Za-z]+-[A-Za-z0-9-]{1,64})$/.test(text)) return text;
  throw new InvalidArgumentError('It must be the index or the UUID of a GPU.');
}

function milliseconds(text: string): number {
  const [, count, unit = 's'] = /^(\d{1,6})(s|m|h)?$/.exec(text) ?? [];
  if (count === undefined)
    throw new InvalidArgumentError('It must be a time such as 30s, 2m or 1h.');
  return Number(count) * (unit === 'h' ? 3_600_000 : unit === 'm' ? 60_000 : 1000);
}

function append(value: string, previous: readonly string[] = []): readonly string[] {
  return [...previous, value];
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
