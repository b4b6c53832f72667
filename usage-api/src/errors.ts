import { defineErrors } from '@nvidia-virtual/service/error-table';

/**
 * Everything that the usage API refuses: one code, the HTTP status, the reason as Kubernetes names
 * it, and one sentence. docs/errors.md lists the same codes; a test compares the two. A code is
 * never reused for another meaning.
 */
const TABLE = {
  NOT_THROUGH_API_SERVER: [
    401,
    'Unauthorized',
    'This API is served through the API server of Kubernetes only: {reason}. Ask the API server for /apis/usage.nvidia-virtual.io, as kubectl does.',
  ],
  FORBIDDEN: [
    403,
    'Forbidden',
    '{resource} is forbidden: User "{user}" cannot {verb} resource "{resource}" in API group "usage.nvidia-virtual.io" {where}{reason}',
  ],
  ACCESS_UNDECIDED: [
    503,
    'ServiceUnavailable',
    'Whether you may do this could not be found out: {reason}. It is tried again with the next request.',
  ],
  NO_SUCH_OBJECT: [404, 'NotFound', '{resource} "{name}" not found: {hint}'],
  NO_SUCH_PATH: [
    404,
    'NotFound',
    'There is nothing at {path}. Served here is /apis/usage.nvidia-virtual.io/v1alpha1.',
  ],
  READ_ONLY: [
    405,
    'MethodNotAllowed',
    '{method} is not possible here: usage is observed, and can be read only. To change it, change the pod.',
  ],
  SELECTOR_WRONG: [400, 'BadRequest', '{kind} "{selector}" is not understood: {reason}.'],
  PARAMETER_WRONG: [400, 'BadRequest', '{parameter} is "{value}", and allowed is {allowed}.'],
  CONTINUE_WRONG: [
    410,
    'Expired',
    'The continue parameter is none that this server gave. List again from the beginning.',
  ],
  VERSION_TOO_OLD: [
    410,
    'Expired',
    'What changed since version {version} is not known any more. List again, and watch from there.',
  ],
  NOT_READY: [
    503,
    'ServiceUnavailable',
    'Pods and nodes have not been read yet since this server started. Try again in some seconds.',
  ],
  ADDRESS_NOT_SERVED: [0, '', '{address} cannot be served: {reason}. Choose another by {option}.'],
} as const satisfies Record<string, readonly [number, string, string]>;

export type ErrorCode = keyof typeof TABLE;

const TEMPLATES = Object.fromEntries(
  Object.entries(TABLE).map(([code, [, , template]]) => [code, template]),
) as Record<ErrorCode, string>;

export class UsageError extends defineErrors('UsageError', TEMPLATES) {
  /** Of HTTP; 0 for what is no answer to a request. */
  get status(): number {
    return TABLE[this.code][0];
  }

  get reason(): string {
    return TABLE[this.code][1];
  }
}
