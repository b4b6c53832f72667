import { defineErrors } from '@nvidia-virtual/service/error-table';

/**
 * Errors of the usage API: code, HTTP status, Kubernetes reason, sentence. A test compares them
 * with docs/errors.md. A code is never reused for another meaning.
 */
const TABLE = {
  NOT_THROUGH_API_SERVER: [
    401,
    'Unauthorized',
    'This API accepts requests only from the Kubernetes API server: {reason}. ' +
      'Request /apis/usage.nvidia-virtual.io from the Kubernetes API server, as kubectl does.',
  ],
  FORBIDDEN: [
    403,
    'Forbidden',
    '{resource} is forbidden: User "{user}" cannot {verb} resource "{resource}" in API group ' +
      '"usage.nvidia-virtual.io" {where}{reason}',
  ],
  ACCESS_UNDECIDED: [503, 'ServiceUnavailable', 'Authorization failed: {reason}. Try again.'],
  NO_SUCH_OBJECT: [404, 'NotFound', '{resource} "{name}" not found: {hint}'],
  NO_SUCH_PATH: [
    404,
    'NotFound',
    'Path {path} does not exist. This server serves /apis/usage.nvidia-virtual.io/v1alpha1.',
  ],
  READ_ONLY: [
    405,
    'MethodNotAllowed',
    '{method} is not supported: usage is read-only. To change it, change the pod.',
  ],
  SELECTOR_WRONG: [400, 'BadRequest', '{kind} "{selector}" is invalid: {reason}.'],
  PARAMETER_WRONG: [400, 'BadRequest', '{parameter} is "{value}", but must be {allowed}.'],
  CONTINUE_WRONG: [410, 'Expired', 'The continue token is invalid. List again from the beginning.'],
  VERSION_TOO_OLD: [
    410,
    'Expired',
    'Version {version} is too old to watch from. List again, and watch from the new version.',
  ],
  WATCHES_FULL: [
    429,
    'TooManyRequests',
    'This server has {limit} open watches of {owner}, which is the limit. End one of them, or ' +
      'list without a watch.',
  ],
  NOT_READY: [
    503,
    'ServiceUnavailable',
    'This server has just started and has not read pods and nodes yet. Try again in a few seconds.',
  ],
  ADDRESS_NOT_SERVED: [
    0,
    '',
    'Cannot listen on {address}: {reason}. Set another address with --listen.',
  ],
} as const satisfies Record<string, readonly [number, string, string]>;

export type ErrorCode = keyof typeof TABLE;

const TEMPLATES = Object.fromEntries(
  Object.entries(TABLE).map(([code, [, , template]]) => [code, template]),
) as Record<ErrorCode, string>;

export class UsageError extends defineErrors('UsageError', TEMPLATES) {
  /** HTTP status. 0: the error does not answer a request. */
  get status(): number {
    return TABLE[this.code][0];
  }

  get reason(): string {
    return TABLE[this.code][1];
  }
}
