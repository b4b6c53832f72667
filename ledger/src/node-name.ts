import { LedgerError } from './errors.js';

/**
 * Accepts all Kubernetes node names. Excludes braces, which would change the hash slot of a key.
 */
const NODE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$/;

export function checkNodeName(name: string): void {
  if (!NODE_NAME.test(name)) throw new LedgerError('NODE_NAME', { value: JSON.stringify(name) });
}
