import { existsSync, readFileSync } from 'node:fs';
import { isIPv6 } from 'node:net';
import { homedir } from 'node:os';
import path from 'node:path';
import { parse } from 'yaml';

/** What stands in a kubeconfig about a cluster; paths are absolute. */
export interface ClusterEntry {
  readonly server?: string;
  readonly 'certificate-authority'?: string;
  readonly 'certificate-authority-data'?: string;
  readonly 'insecure-skip-tls-verify'?: boolean;
  readonly 'tls-server-name'?: string;
  readonly 'proxy-url'?: string;
}

/** What stands in a kubeconfig about a user; paths are absolute. */
export interface UserEntry {
  readonly 'client-certificate'?: string;
  readonly 'client-certificate-data'?: string;
  readonly 'client-key'?: string;
  readonly 'client-key-data'?: string;
  readonly token?: string;
  readonly tokenFile?: string;
  readonly username?: string;
  readonly password?: string;
  readonly as?: string;
  readonly 'as-uid'?: string;
  readonly 'as-groups'?: readonly string[];
  readonly exec?: ExecEntry;
  readonly 'auth-provider'?: { readonly name?: string };
}

export interface ExecEntry {
  readonly apiVersion?: string;
  readonly command: string;
  readonly args?: readonly string[] | null;
  readonly env?: readonly { readonly name: string; readonly value: string }[] | null;
  readonly installHint?: string;
  readonly provideClusterInfo?: boolean;
  readonly interactiveMode?: 'Never' | 'IfAvailable' | 'Always';
}

export interface ContextEntry {
  readonly cluster?: string;
  readonly user?: string;
  readonly namespace?: string;
}

/** Several files as one: of what is named twice, the first file's holds. */
export interface Kubeconfig {
  readonly currentContext: string | undefined;
  readonly clusters: ReadonlyMap<string, ClusterEntry>;
  readonly users: ReadonlyMap<string, UserEntry>;
  readonly contexts: ReadonlyMap<string, ContextEntry>;
  /** Those that were read. */
  readonly files: readonly string[];
}

/** A file that cannot be used. */
export class KubeconfigError extends Error {
  override readonly name = 'KubeconfigError';

  constructor(
    readonly file: string,
    readonly reason: string,
  ) {
    super(`${file}: ${reason}`);
  }
}

const CLUSTER_PATHS = ['certificate-authority'];
const USER_PATHS = ['client-certificate', 'client-key', 'tokenFile'];

/**
 * Reads what kubectl would read: `file` alone if it is given, and then it must exist; else the files that KUBECONFIG lists, else
 * `~/.kube/config`, of which any may be missing.
 */
export function readKubeconfig(file: string | undefined, environment: NodeJS.ProcessEnv): Kubeconfig {
  const listed = (environment['KUBECONFIG'] ?? '').split(path.delimiter).filter((one) => one !== '');
  const standard = path.join(environment['HOME'] ?? homedir(), '.kube', 'config');
  const files = file !== undefined ? [file] : listed.length > 0 ? [...new Set(listed)] : [standard];
  const read = files.flatMap((one) => readFile(one, file !== undefined) ?? []);
  const merged = <T>(entries: (content: Content) => ReadonlyMap<string, T>) =>
    new Map(read.toReversed().flatMap((content) => [...entries(content)]));
  return {
    currentContext: read.map((content) => content.currentContext).find(Boolean),
    clusters: merged((content) => content.clusters),
    users: merged((content) => content.users),
    contexts: merged((content) => content.contexts),
    files: read.map((content) => content.file),
  };
}

const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

/** What a pod was given to reach its own cluster; undefined outside. kubectl takes it where there is no kubeconfig. */
export function podKubeconfig(environment: NodeJS.ProcessEnv, directory = SERVICE_ACCOUNT): Kubeconfig | undefined {
  const host = environment['KUBERNETES_SERVICE_HOST'];
  const port = environment['KUBERNETES_SERVICE_PORT'];
  if (!host || !port || !existsSync(path.join(directory, 'token'))) return undefined;
  const name = 'in-cluster';
  const cluster = {
    server: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`,
    'certificate-authority': path.join(directory, 'ca.crt'),
  };
  const namespaceFile = path.join(directory, 'namespace');
  const namespace = existsSync(namespaceFile) ? { namespace: readFileSync(namespaceFile, 'utf8').trim() } : {};
  return {
    currentContext: name,
    clusters: new Map([[name, cluster]]),
    users: new Map([[name, { tokenFile: path.join(directory, 'token') }]]),
    contexts: new Map([[name, { cluster: name, user: name, ...namespace }]]),
    files: [],
  };
}

interface Content extends Omit<Kubeconfig, 'files'> {
  readonly file: string;
}

function readFile(file: string, needed: boolean): Content | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' && !needed) return undefined;
    throw new KubeconfigError(file, code === 'ENOENT' ? 'no such file' : message);
  }
  return { file, ...readContent(file, text) };
}

function readContent(file: string, text: string): Omit<Content, 'file'> {
  const content = parseYaml(file, text);
  const directory = path.dirname(path.resolve(file));
  return {
    currentContext: (content['current-context'] as string | undefined) || undefined,
    clusters: named<ClusterEntry>(file, content, 'clusters', 'cluster', (entry) => absolute(entry, CLUSTER_PATHS, directory)),
    users: named<UserEntry>(file, content, 'users', 'user', (entry) => absoluteCommand(absolute(entry, USER_PATHS, directory), directory)),
    contexts: named<ContextEntry>(file, content, 'contexts', 'context', (entry) => entry),
  };
}

function parseYaml(file: string, text: string): Record<string, unknown> {
  let content: unknown;
  try {
    content = parse(text) ?? {};
  } catch (error) {
    throw new KubeconfigError(file, (error as Error).message.split('\n', 1)[0] as string);
  }
  if (typeof content !== 'object' || Array.isArray(content)) throw new KubeconfigError(file, 'it holds no kubeconfig');
  return content as Record<string, unknown>;
}

function named<T>(file: string, content: Record<string, unknown>, list: string, member: string, make: (entry: T) => T): Map<string, T> {
  const entries = content[list] ?? [];
  if (!Array.isArray(entries)) throw new KubeconfigError(file, `"${list}" is no list`);
  const pairs = (entries as Record<string, unknown>[]).map((entry) => [String(entry['name']), make((entry[member] ?? {}) as T)] as const);
  // In one file too the first of a name holds.
  return new Map(pairs.reverse());
}

function absolute<T extends object>(entry: T, keys: readonly string[], directory: string): T {
  const found = keys.flatMap((key) => {
    const value = (entry as Record<string, unknown>)[key];
    return typeof value === 'string' && value !== '' ? [[key, path.resolve(directory, value)] as const] : [];
  });
  return { ...entry, ...Object.fromEntries(found) };
}

/** A command without a slash is looked up in PATH, any other beside the file. */
function absoluteCommand(entry: UserEntry, directory: string): UserEntry {
  const { exec } = entry;
  if (!exec?.command?.includes('/')) return entry;
  return { ...entry, exec: { ...exec, command: path.resolve(directory, exec.command) } };
}
