import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { NODE_DIRECTORY } from './places.js';

/** The program that containerd runs instead of runc. */
export const RUNC = path.join(NODE_DIRECTORY, 'runc');

/**
 * Numbers in linux/capability.h of the capabilities that the product requests and that a sandboxed
 * machine may lack.
 */
const CAPABILITIES = { CAP_SYS_PTRACE: 19, CAP_SYS_ADMIN: 21, CAP_SYS_RESOURCE: 24 };

/**
 * Wrapper of runc. A machine that is itself a container cannot grant capabilities that it lacks,
 * and runc then refuses the container. The wrapper drops these capabilities.
 */
export function writeRunc(): void {
  const bounding = /^CapBnd:\s+(\w+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
  const bounds = BigInt(`0x${bounding ?? 'ffffffffffffffff'}`);
  const lacking = Object.entries(CAPABILITIES).filter(
    ([, bit]) => (bounds & (1n << BigInt(bit))) === 0n,
  );
  const edits = lacking.map(([name]) => `-e 's/,"${name}"//g; s/"${name}",//g'`);
  writeFileSync(RUNC, edits.length === 0 ? PLAIN : bounded(edits.join(' ')), { mode: 0o755 });
}

const PLAIN = '#!/bin/sh\nexec runc "$@"\n';

/** The specification is in the bundle, an argument of `create`; for `exec`, it is a file. */
function bounded(edits: string): string {
  return `#!/bin/sh
previous=
for argument in "$@"; do
  if [ "$previous" = --bundle ]; then sed -i ${edits} "$argument/config.json"; fi
  if [ "$previous" = --process ]; then sed -i ${edits} "$argument"; fi
  previous=$argument
done
exec runc "$@"
`;
}
