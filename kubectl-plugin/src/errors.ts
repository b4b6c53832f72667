import { defineErrors } from '@nvidia-virtual/service/error-table';

/**
 * Errors of `kubectl gpu-usage`: code and sentence (what happened, to which object, what to do).
 * The exit status is 1. Errors of kubectl are passed on unchanged. A test compares this table with
 * docs/errors.md. A code is never reused for another meaning.
 */
const TABLE = {
  NODE_TOO_OLD:
    'The plugin requires Node {oldest} or later, but {program} is {version}. ' +
    'Install a newer one, and put it before this one in PATH.',
  USAGE: '{reason}. `kubectl gpu-usage --help` shows the usage.',
  KUBECTL_MISSING:
    'The plugin requires kubectl, which is not in PATH. Install it, or add its directory to PATH.',
  NOT_INSTALLED:
    'The cluster has no API usage.nvidia-virtual.io: nvidia-virtual is not installed, ' +
    'or without its usage API. Install its chart, or choose another cluster with --context.',
  API_AWAY:
    'The usage API of nvidia-virtual does not answer: {reason}. ' +
    'Check `kubectl describe apiservice v1alpha1.usage.nvidia-virtual.io` and the Deployment ' +
    'nvidia-virtual-usage-api.',
  FORBIDDEN:
    'Permission denied: {reason}. Ask your administrator for a role that may get, ' +
    'list and watch {resource} of usage.nvidia-virtual.io.',
  NO_SUCH_POD:
    'Namespace {namespace} has no pod {name} that requests nvidia-virtual/gpu and has not ' +
    'ended. `kubectl get pod {name} -n {namespace}` shows whether the pod exists.',
  SUSPENSION_FORBIDDEN:
    'Permission denied: {reason}. Who may get and patch a pod may suspend and resume it.',
  SUSPENDED_BY_NODE:
    'Pod {name} of namespace {namespace} is suspended by an administrator of node {node}, who ' +
    'can resume it with `gpu-proxy resume`. Nothing has changed.',
  SUSPENSION_FAILED: 'Pod {name} of namespace {namespace} is not {changed}: {reason} {rest}',
  MOVE_UNPLACED:
    'Pod {name} of namespace {namespace} is on no node yet, so it does not move. ' +
    'The annotation nvidia-virtual/gpu-uuid of a new pod chooses its GPU.',
  MOVE_INDEX:
    'You may not see the GPUs of node {node}, so GPU {gpu} is unknown: give its UUID by --gpu. ' +
    'An administrator sees it by `kubectl gpu-usage node {node} -o yaml`.',
  NO_SUCH_GPU: 'Node {node} has no GPU {gpu}. Its GPUs: {gpus}.',
  MOVE_FORBIDDEN: 'Permission denied: {reason}. Who may get and patch a pod may move it.',
  MOVE_FAILED:
    'Pod {name} of namespace {namespace} is not on GPU {gpu} of node {node}: {reason} {rest}',
  DRAIN_FORBIDDEN: 'Permission denied: {reason}. Who may get and patch a node may drain its GPUs.',
  DRAIN_INCOMPLETE:
    'Pods that stay on GPU {gpu} of node {node}: {stay}. It gets no others, and the scheduler ' +
    'tries again as long as it is drained. Delete them, or undrain the GPU.',
  NO_SUCH_NODE:
    'No node {name} has nvidia-virtual GPUs. `kubectl gpu-usage nodes` lists all nodes.',
  PROMETHEUS_AWAY:
    'Prometheus {prometheus} does not answer through the API server: {reason}. ' +
    'Name the Service of your Prometheus: `--prometheus NAMESPACE/SERVICE:PORT`.',
  PROMETHEUS_FORBIDDEN:
    'Permission denied: {reason}. Ask your administrator for a role that may get ' +
    'services/proxy in namespace {namespace}.',
  NO_RELEASE:
    'No nvidia-virtual was found in {where}, or you may not list DaemonSets there. ' +
    'Install its chart, or name its namespace by -n.',
  SEVERAL_RELEASES: 'There are several releases in {where}: {namespaces}. Name one by -n.',
  PROBLEMS_FOUND: '{count} found.',
  BUNDLE_NOT_WRITTEN:
    'The archive {file} cannot be written: {reason}. Name another file: ' +
    '`kubectl gpu-usage bundle FILE`.',
} as const satisfies Record<string, string>;

export type ErrorCode = keyof typeof TABLE;
/** Ends the command with status 1. `message` is the sentence. */
export class PluginError extends defineErrors('PluginError', TABLE) {}

/** The requested object, for error messages. */
export interface Subject {
  readonly resource: 'podgpuusages' | 'nodegpuusages';
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
}

/** kubectl failed. `message` is its error as it printed it. */
export class KubectlError extends Error {
  override readonly name = 'KubectlError';
  /** Reason in the API server's Status, such as NotFound. Undefined: no Status. */
  readonly reason: string | undefined;
  /** Message of the Status. */
  readonly answer: string;

  constructor(message: string) {
    super(message);
    const [, reason, answer = ''] = /^Error from server \((\w+)\): (.*)$/s.exec(message) ?? [];
    this.reason = reason;
    this.answer = answer;
  }
}

/** Whether the usage API is unreachable, perhaps temporarily. */
export function isAway(error: unknown): boolean {
  return error instanceof KubectlError && AWAY.includes(error.reason ?? '');
}

const AWAY = ['ServiceUnavailable', 'Timeout'];
/** Message of an API server without the usage API. */
const NO_SUCH_PATH = 'the server could not find the requested resource';

/** Converts a refusal by RBAC to a PluginError with this code. Other errors stay unchanged. */
export function explainForbidden(
  error: unknown,
  code: 'DRAIN_FORBIDDEN' | 'MOVE_FORBIDDEN' | 'SUSPENSION_FORBIDDEN',
): unknown {
  return error instanceof KubectlError && error.reason === 'Forbidden'
    ? new PluginError(code, { reason: error.answer.replace(/\.$/, '') })
    : error;
}

/** Converts an error of a request to Prometheus to a PluginError. Other errors stay unchanged. */
export function explainPrometheus(error: unknown, prometheus: string, namespace: string): unknown {
  if (error instanceof SyntaxError)
    return new PluginError('PROMETHEUS_AWAY', { prometheus, reason: 'its answer is no JSON' });
  if (!(error instanceof KubectlError) || error.reason === undefined) return error;
  const reason = error.answer.replace(/\.$/, '');
  return error.reason === 'Forbidden'
    ? new PluginError('PROMETHEUS_FORBIDDEN', { reason, namespace })
    : new PluginError('PROMETHEUS_AWAY', { prometheus, reason });
}

/** Converts an error answer of the usage API to a PluginError. Other errors stay unchanged. */
export function explain(error: unknown, { resource, namespace = '', name }: Subject): unknown {
  if (!(error instanceof KubectlError)) return error;
  const reason = error.answer.replace(/\.$/, '');
  if (error.reason === 'Forbidden') return new PluginError('FORBIDDEN', { reason, resource });
  if (isAway(error)) return new PluginError('API_AWAY', { reason });
  if (error.reason !== 'NotFound') return error;
  if (error.answer === NO_SUCH_PATH || name === undefined) return new PluginError('NOT_INSTALLED');
  return resource === 'podgpuusages'
    ? new PluginError('NO_SUCH_POD', { namespace, name })
    : new PluginError('NO_SUCH_NODE', { name });
}
