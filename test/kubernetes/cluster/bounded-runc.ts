import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { NODE_DIRECTORY } from './places.js';

/** What containerd runs in place of runc. */
export const RUNC = path.join(NODE_DIRECTORY, 'runc');

/**
 * By their numbers in linux/capability.h: those that the product asks for and that a machine in a
 * sandbox may lack.
 */
const CAPABILITIES = { CAP_SYS_PTRACE: 19, CAP_SYS_ADMIN: 21, CAP_SYS_RESOURCE: 24 };

/**
 * A machine that is a container itself can give nobody what it has not got, and runc refuses the
 * container then. This runc leaves out what is lacking; where nothing is, it is runc.
 */
export function writeRunc(): void {
  const bounds = BigInt(
    `0x${/^CapBnd:\s+(\w+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? 'ffffffffffffffff'}`,
  );
  const lacking = Object.entries(CAPABILITIES).filter(
    ([, bit]) => (bounds & (1n << BigInt(bit))) === 0n,
  );
  const edits = lacking.map(([name]) => `-e 's/,"${name}"//g; s/"${name}",//g'`);
  writeFileSync(RUNC, edits.length === 0 ? PLAIN : bounded(edits.join(' ')), { mode: 0o755 });
}

const PLAIN = '#!/bin/sh\nexec runc "$@"\n';

/** The specification lies in the bundle, which is an argument of `create`. */
function bounded(edits: string): string {
  return `#!/bin/sh
previous=
for argument in "$@"; do
  if [ "$previous" = --bundle ]; then sed -i ${edits} "$argument/config.json"; fi
  previous=$argument
done
exec runc "$@"
`;
}
