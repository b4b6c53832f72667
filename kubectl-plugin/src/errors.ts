import { defineErrors } from '@nvidia-virtual/service/error-table';

/**
 * Errors of `kubectl gpu-usage` beside those of kubectl, which are passed on: one code and message
 * (what happened, to which object, what to do). The exit status is 1, as kubectl's. docs/errors.md
 * lists the same codes; a test compares the two. A code is never reused for another meaning.
 */
const TABLE = {
  NODE_TOO_OLD:
    'The plugin needs Node {oldest} or later, and {program} is {version}. Install a newer one, and put it into PATH before this one.',
  USAGE: '{reason}. `kubectl gpu-usage --help` shows the usage.',
  KUBECTL_MISSING:
    'The plugin runs kubectl, and there is no kubectl in PATH. Install it, or add its directory to PATH.',
  NOT_INSTALLED:
    'The cluster has no API usage.nvidia-virtual.io, so nvidia-virtual is not installed there, or without its usage API. Install its chart, or choose another cluster by --context.',
  API_AWAY:
    'The usage API of nvidia-virtual does not answer: {reason}. `kubectl describe apiservice v1alpha1.usage.nvidia-virtual.io` says why; its pods are the Deployment nvidia-virtual-usage-api.',
  FORBIDDEN:
    'You may not do this: {reason}. Ask your administrator for a role that may get, list and watch {resource} of usage.nvidia-virtual.io there.',
  NO_SUCH_POD:
    'Namespace {namespace} has no pod {name} that asks for nvidia-virtual/gpu and has not ended. `kubectl get pod {name} -n {namespace}` shows whether there is one at all.',
  NO_SUCH_NODE:
    'There is no node {name} with GPUs of nvidia-virtual. `kubectl gpu-usage nodes` lists all nodes.',
} as const satisfies Record<string, string>;

export type ErrorCode = keyof typeof TABLE;
/** What ends the command with status 1; `message` is the sentence. */
export class PluginError extends defineErrors('PluginError', TABLE) {}

/** What somebody asked for, for sentences about it. */
export interface Subject {
  readonly resource: 'podgpuusages' | 'nodegpuusages';
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
}

/** kubectl failed. `message` is its error as it printed it. */
export class KubectlError extends Error {
  override readonly name = 'KubectlError';
  /** The reason in the API server's Status, such as NotFound. Undefined: no Status came. */
  readonly reason: string | undefined;
  /** The message of that Status. */
  readonly answer: string;

  constructor(message: string) {
    super(message);
    const [, reason, answer = ''] = /^Error from server \((\w+)\): (.*)$/s.exec(message) ?? [];
    this.reason = reason;
    this.answer = answer;
  }
}

/** The usage API does not answer, perhaps only for a moment. */
export function isAway(error: unknown): boolean {
  return error instanceof KubectlError && AWAY.includes(error.reason ?? '');
}

const AWAY = ['ServiceUnavailable', 'Timeout'];
/** Of an API server that does not have the API. */
const NO_SUCH_PATH = 'the server could not find the requested resource';

/** An answer of the API as a sentence about the subject. Every other error stays as it is. */
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
