import type { ServerResponse } from 'node:http';
import { UsageError } from '../errors.js';

/** Answers with JSON. */
export function answer(response: ServerResponse, body: object, status = 200): void {
  const text = `${JSON.stringify(body)}\n`;
  response
    .writeHead(status, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
    })
    .end(text);
}

/**
 * Answers with a Kubernetes Status object. An error other than UsageError is a defect: its message
 * goes to the log only.
 */
export function answerError(response: ServerResponse, error: unknown): void {
  const known = error instanceof UsageError ? error : undefined;
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const code = known?.status || 500;
  const message =
    known?.message ?? 'The usage API failed. See the log of nvidia-virtual-usage-api.';
  if (code === 503) response.setHeader('retry-after', '1');
  if (code === 405) response.setHeader('allow', 'GET');
  const reason = known?.reason ?? 'InternalError';
  answer(
    response,
    {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message,
      reason,
      code,
    },
    code,
  );
}

/** Adds a `Warning` header, which kubectl prints on standard error (RFC 7234, 5.5). */
export function warn(response: ServerResponse, sentence: string): void {
  response.setHeader('warning', `299 - "${sentence.replaceAll(/["\\]/g, '\\$&')}"`);
}
