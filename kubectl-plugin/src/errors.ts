import { ApiCredentialsError, ApiError, ApiUnreachableError } from './cluster/api-client.js';
import { ExecCredentialError } from './cluster/exec-credentials.js';
import { KubeconfigError } from './cluster/kubeconfig.js';
import { KubeconfigNameError, NoClusterError, ProxyKindError } from './cluster/kubeconfig-target.js';

/**
 * Everything that `kubectl gpu-usage` can fail at: one code, one sentence (what happened, to which object, what to do). The exit status is
 * 1, as kubectl's. docs/errors.md lists the same codes; a test compares the two. A code is never reused for another meaning.
 */
const TABLE = {
  NODE_TOO_OLD:
    'The plugin needs Node {oldest} or later, and {program} is {version}. Install a newer one, and put it into PATH before this one.',
  USAGE: '{reason}. `kubectl gpu-usage --help` shows what can be said.',
  KUBECONFIG: 'The kubeconfig {file} cannot be used: {reason}. Repair it, or choose another by --kubeconfig or KUBECONFIG.',
  NO_SUCH_CONTEXT: 'There is no {what} "{name}" in the kubeconfig; there are: {known}. Choose one of them by --{what}.',
  NO_CLUSTER: 'No cluster is chosen. Choose one by `kubectl config use-context`, --context or --kubeconfig.',
  PROXY_KIND:
    'The proxy {proxy} for the cluster {server} cannot be used: the plugin goes through http:// and https:// only. Let `kubectl proxy` run, which knows others too, and give --server=http://127.0.0.1:8001.',
  CREDENTIALS: 'The program {command}, which the kubeconfig names for credentials, gave none: {reason}. {hint}',
  CERTIFICATE: 'A certificate or key for the cluster {server} cannot be used: {reason}. Check those that the kubeconfig or the flags name.',
  UNREACHABLE: 'The cluster {server} cannot be reached: {reason}. Check the address, the network and --context.',
  NOT_LOGGED_IN: 'The cluster {server} does not accept your credentials. Log in again, or choose another user by --context or --user.',
  NOT_INSTALLED:
    'The cluster {server} has no API usage.nvidia-virtual.io, so nvidia-virtual is not installed there, or without its usage API. Install its chart, or choose another cluster by --context.',
  API_AWAY:
    'The usage API of nvidia-virtual does not answer: {reason}. `kubectl describe apiservice v1alpha1.usage.nvidia-virtual.io` says why; its pods are the Deployment nvidia-virtual-usage-api.',
  FORBIDDEN:
    'You may not do this: {reason}. Ask your administrator for a role that may get, list and watch {resource} of usage.nvidia-virtual.io there.',
  NO_SUCH_POD:
    'Namespace {namespace} has no pod {name} that asks for nvidia-virtual/gpu and has not ended. `kubectl get pod {name} -n {namespace}` shows whether there is one at all.',
  NO_SUCH_NODE: 'There is no node {name} with GPUs of nvidia-virtual. `kubectl gpu-usage nodes` lists those that there are.',
  REFUSED: 'The API server refused: {reason}',
} as const satisfies Record<string, string>;

export type ErrorCode = keyof typeof TABLE;
export const ERROR_CODES = Object.keys(TABLE) as ErrorCode[];

/** What ends the command with status 1; `message` is the sentence. */
export class PluginError extends Error {
  override readonly name = 'PluginError';

  constructor(
    readonly code: ErrorCode,
    values: Record<string, string | number> = {},
  ) {
    super(
      template(code)
        .replaceAll(/\{(\w+)\}/g, (_, name: string) => String(values[name]))
        .trim(),
    );
  }
}

export function template(code: ErrorCode): string {
  return TABLE[code];
}

/** What somebody asked for, for sentences about it. */
export interface Subject {
  readonly server: string;
  readonly resource: 'podgpuusages' | 'nodegpuusages';
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
}

/** The API server found nobody behind it who answers. */
export function isAway(error: unknown): boolean {
  return error instanceof ApiError && [502, 503, 504].includes(error.code);
}

/** Whatever went wrong on the way to the API, as a sentence; what is none of this is a defect and stays as it is. */
export function explain(error: unknown, subject: Subject): unknown {
  if (error instanceof ApiError) return explainAnswer(error, subject);
  if (error instanceof ApiCredentialsError) return new PluginError('CERTIFICATE', { server: subject.server, reason: error.message });
  if (error instanceof ApiUnreachableError) return new PluginError('UNREACHABLE', { server: error.server, reason: error.reason });
  return explainKubeconfig(error);
}

export function explainKubeconfig(error: unknown): unknown {
  if (error instanceof KubeconfigError) return new PluginError('KUBECONFIG', { file: error.file, reason: error.reason });
  if (error instanceof KubeconfigNameError)
    return new PluginError('NO_SUCH_CONTEXT', { what: error.what, name: error.missing, known: error.known.join(', ') || 'none' });
  if (error instanceof ProxyKindError) return new PluginError('PROXY_KIND', { proxy: error.proxy, server: error.server });
  if (error instanceof NoClusterError) return new PluginError('NO_CLUSTER');
  if (error instanceof ExecCredentialError)
    return new PluginError('CREDENTIALS', {
      command: error.command,
      reason: error.reason,
      hint: error.hint ?? 'Run it by hand to see why.',
    });
  return error;
}

function explainAnswer(error: ApiError, { server, resource, namespace = '', name }: Subject): PluginError {
  const { code, status, message } = error;
  const reason = message.replace(/\.$/, '');
  if (code === 401) return new PluginError('NOT_LOGGED_IN', { server });
  if (code === 403) return new PluginError('FORBIDDEN', { reason, resource });
  if (isAway(error)) return new PluginError('API_AWAY', { reason });
  if (code !== 404) return new PluginError('REFUSED', { reason: message });
  // Ours says what was not found; an API server without our API says only that there is nothing at this path.
  if (status.reason !== 'NotFound' || name === undefined) return new PluginError('NOT_INSTALLED', { server });
  return resource === 'podgpuusages' ? new PluginError('NO_SUCH_POD', { namespace, name }) : new PluginError('NO_SUCH_NODE', { name });
}
