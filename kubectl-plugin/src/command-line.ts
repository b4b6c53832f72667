import { Command, CommanderError, Option } from 'commander';
import { PluginError } from './errors.js';

export const OUTPUTS = ['wide', 'json', 'yaml', 'name'] as const;
export type Output = (typeof OUTPUTS)[number];
export const SORT_FIELDS = ['name', 'memory', 'time', 'slots', 'state'] as const;
export type SortField = (typeof SORT_FIELDS)[number];

/** What is to be shown. */
export type Request =
  | { readonly what: 'pods' | 'nodes'; readonly name: undefined }
  | { readonly what: 'pod' | 'node'; readonly name: string };

export interface Flags {
  readonly namespace?: string;
  readonly allNamespaces?: boolean;
  readonly selector?: string;
  readonly fieldSelector?: string;
  readonly watch?: boolean;
  readonly output?: Output;
  readonly headers: boolean;
  readonly sortBy?: SortField;
  /** As kubectl takes it. */
  readonly requestTimeout: string;
}

export interface CommandLine {
  readonly request: Request;
  readonly flags: Flags;
  /** Flags that choose cluster and user, for kubectl. */
  readonly connection: readonly string[];
}

const EXAMPLES = `
Examples:
  kubectl gpu-usage                     pods of the current namespace: quota and real use of memory and time
  kubectl gpu-usage -A -l app=train     pods of all namespaces with this label
  kubectl gpu-usage pod train-0         one pod, container by container
  kubectl gpu-usage nodes               each GPU: what it has, what is granted, used and free
  kubectl gpu-usage node gpu-7          one node: its GPUs, and the pods that share them
  kubectl gpu-usage -w -o wide          goes on, and prints a row whenever something changed
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
      'Shows what pods were granted of GPUs by nvidia-virtual and what they use, and what is free on each GPU.',
    )
    .usage('[pods | pod NAME | nodes | node NAME] [flags]')
    .argument('[words...]')
    .version(`kubectl-gpu_usage ${version}`, '--version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .addHelpText('after', EXAMPLES);
  for (const option of [...outputOptions(), ...connectionOptions()]) command.addOption(option);
  return command;
}

function outputOptions(): Option[] {
  return [
    new Option('-n, --namespace <name>', "the namespace of the pods (default: the context's)"),
    new Option('-A, --all-namespaces', 'pods of all namespaces'),
    new Option(
      '-l, --selector <labels>',
      'only pods or nodes with these labels: key=value, key!=value, key in (a,b), key, !key',
    ),
    new Option(
      '--field-selector <fields>',
      'only those with these fields: state=Waiting, node=NAME, metadata.name=NAME',
    ),
    new Option('-w, --watch', 'go on, and print what changes'),
    new Option(
      '-o, --output <format>',
      'wide: more columns; json, yaml; name: names alone',
    ).choices(OUTPUTS),
    new Option('--no-headers', 'leave the headings out'),
    new Option('--sort-by <field>', 'largest first, except name and state').choices(SORT_FIELDS),
    new Option(
      '--request-timeout <time>',
      'how long to wait for an answer: 5s, 1m; 0: for ever',
    ).default('30s'),
  ];
}

/** As kubectl spells them, which is given those that are set. */
function connectionOptions(): Option[] {
  return [
    new Option(
      '--kubeconfig <file>',
      'the kubeconfig (default: the files that KUBECONFIG lists, else ~/.kube/config)',
    ),
    new Option('--context <name>', 'the context of the kubeconfig'),
    new Option('--cluster <name>', 'the cluster of the kubeconfig'),
    new Option('--user <name>', 'the user of the kubeconfig'),
    new Option('-s, --server <url>', 'the address of the API server'),
    new Option('--token <token>', 'a bearer token'),
    new Option('--as <user>', 'act as this user'),
    new Option('--as-group <group>', 'act as a member of this group; may be repeated').argParser(
      append,
    ),
    new Option('--as-uid <uid>', 'act as the user with this UID'),
    new Option(
      '--certificate-authority <file>',
      'authorities that are trusted to know the API server (PEM)',
    ),
    new Option('--client-certificate <file>', 'the certificate that says who you are (PEM)'),
    new Option('--client-key <file>', 'its key (PEM)'),
    new Option('--tls-server-name <name>', 'the name that the API server must prove to have'),
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
      reason: `"${more.join(' ')}" is too much: one name is shown at a time`,
    });
  if (name?.includes('/'))
    throw new PluginError('USAGE', { reason: `"${name}" is not a name: it contains a slash` });
  const kind = KINDS[what];
  if (kind === undefined)
    throw new PluginError('USAGE', {
      reason: `"${what}" is none of pods, pod NAME, nodes, node NAME (or did you mean \`pod ${what}\`?)`,
    });
  return name === undefined ? { what: `${kind}s`, name } : { what: kind, name };
}

const KINDS: Readonly<Record<string, 'pod' | 'node'>> = {
  pod: 'pod',
  pods: 'pod',
  po: 'pod',
  node: 'node',
  nodes: 'node',
  no: 'node',
};

function append(value: string, previous: readonly string[] = []): readonly string[] {
  return [...previous, value];
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
