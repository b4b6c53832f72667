import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { createServer, type Server } from 'node:https';
import { keepContext } from '@nvidia-virtual/kube-common/certificates';
import { systemReason } from '@nvidia-virtual/service/errors';
import { SchedulerError } from '../errors.js';

/** Milliseconds for a TLS handshake. */
const HANDSHAKE_TIMEOUT = 10_000;

/**
 * The port that the API server asks. With the file of a client authority, a connection without its
 * certificate ends in the handshake.
 * @throws SchedulerError CLIENT_AUTHORITY_UNREADABLE
 */
export function webhookServer(
  clientAuthority: string | undefined,
  listener: RequestListener,
): Server {
  const required = clientAuthority !== undefined;
  const options = {
    handshakeTimeout: HANDSHAKE_TIMEOUT,
    minVersion: 'TLSv1.2',
    requestCert: required,
    rejectUnauthorized: required,
  } as const;
  const server = createServer(options, listener);
  keepContext(server, required ? { ca: readAuthority(clientAuthority) } : {});
  return server;
}

function readAuthority(file: string): string {
  try {
    const authority = readFileSync(file, 'utf8');
    new X509Certificate(authority); // throws for what is no certificate
    return authority;
  } catch (error) {
    throw new SchedulerError('CLIENT_AUTHORITY_UNREADABLE', { file, reason: systemReason(error) });
  }
}
