import {
  type CommandLine,
  makeCommand,
  OUTPUTS,
  parseCommandLine,
  SORT_FIELDS,
} from './command-line.js';
import { Kubectl } from './kubectl.js';
import { UsageClient } from './usage-client.js';

/** Tells the shell not to offer file names. */
const NO_FILES = ':4';
const FILES = ':0';
/** Timeout of requests for completion. */
const TIMEOUT = '3s';

/**
 * Shell completion. kubectl runs the executable `kubectl_complete-gpu_usage` with the words so
 * far, the last one incomplete. Prints one proposal per line, then a directive for the shell.
 */
export async function complete(
  words: readonly string[],
  environment: NodeJS.ProcessEnv,
  version: string,
): Promise<string[]> {
  const unfinished = words.at(-1) ?? '';
  const before = words.slice(0, -1);
  const flag = flagWithValue(before.at(-1) ?? '', version);
  if (flag !== undefined && FILE_FLAGS.includes(flag)) return [FILES];
  const proposals = unfinished.startsWith('-')
    ? flags(version)
    : await propose(flag, before, environment, version);
  return [...proposals.filter((proposal) => proposal.startsWith(unfinished)), NO_FILES];
}

const FILE_FLAGS = [
  '--kubeconfig',
  '--certificate-authority',
  '--client-certificate',
  '--client-key',
];

function flags(version: string): string[] {
  return makeCommand(version).options.flatMap(({ long, description }) =>
    long ? [`${long}\t${description}`] : [],
  );
}

/** The long name of the flag whose value comes next. */
function flagWithValue(word: string, version: string): string | undefined {
  const option = makeCommand(version).options.find(
    ({ long, short }) => word !== '' && (long === word || short === word),
  );
  return option?.required ? (option.long ?? undefined) : undefined;
}

async function propose(
  flag: string | undefined,
  before: readonly string[],
  environment: NodeJS.ProcessEnv,
  version: string,
): Promise<string[]> {
  if (flag === '--output') return [...OUTPUTS];
  if (flag === '--sort-by') return [...SORT_FIELDS];
  try {
    const line = parseCommandLine(flag === undefined ? before : before.slice(0, -1), version);
    if (typeof line === 'string') return [];
    const kubectl = new Kubectl({
      connection: line.connection,
      environment,
      requestTimeout: TIMEOUT,
      say: () => {},
    });
    if (flag !== undefined) return await fromKubeconfig(flag, kubectl);
    return await names(line, before, kubectl);
  } catch {
    // No proposals on errors: a message would appear in the middle of the user's command line.
    return [];
  }
}

async function fromKubeconfig(flag: string, kubectl: Kubectl): Promise<string[]> {
  const list = KUBECONFIG_LISTS[flag];
  return list === undefined ? [] : kubectl.names(list);
}

const KUBECONFIG_LISTS: Readonly<Record<string, 'contexts' | 'clusters' | 'users'>> = {
  '--context': 'contexts',
  '--cluster': 'clusters',
  '--user': 'users',
};

const COMMANDS: readonly string[] = [
  'pod',
  'pods',
  'node',
  'nodes',
  'namespaces',
  'suspend',
  'resume',
  'move',
  'drain',
  'undrain',
  'doctor',
  'bundle',
];

const NODE_COMMANDS: readonly string[] = ['nodes', 'drain', 'undrain', 'doctor'];

async function names(
  { request, flags: given }: CommandLine,
  before: readonly string[],
  kubectl: Kubectl,
): Promise<string[]> {
  if (request.name !== undefined) return [];
  const word = before.findLast((one) => COMMANDS.includes(one));
  if (request.what === 'namespaces' || request.what === 'bundle') return [];
  if (word === undefined) return [...COMMANDS];
  const client = new UsageClient(kubectl);
  const { items } = NODE_COMMANDS.includes(request.what)
    ? await client.nodes({})
    : await client.pods({ namespace: given.namespace ?? (await kubectl.namespace()) });
  return items.map(({ metadata }) => metadata.name);
}
