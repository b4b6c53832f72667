import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { labelForContainers } from './selinux.js';

let scratch: string;
beforeEach(() => {
  scratch = mkdtempSync(path.join(tmpdir(), 'selinux-'));
});
afterEach(() => rmSync(scratch, { recursive: true }));

/** This machine need not have SELinux: its context is a file, and chcon is a script. */
function context(current: string | undefined, script = 'echo "$@" >> "$0.calls"') {
  const file = path.join(scratch, 'current');
  if (current !== undefined) writeFileSync(file, current);
  const chcon = path.join(scratch, 'chcon');
  writeFileSync(chcon, `#!/bin/sh\n${script}\n`);
  chmodSync(chcon, 0o755);
  return { file, chcon };
}

test('with SELinux, the directory gets the type that containers may use', () => {
  const selinux = context('system_u:system_r:spc_t:s0\0');
  const directory = path.join(scratch, 'ours');
  labelForContainers(directory, selinux);
  expect(readFileSync(`${selinux.chcon}.calls`, 'utf8')).toBe(
    `--type container_file_t ${directory}\n`,
  );
  expect(existsSync(directory)).toBe(true);
});

test.each([['unconfined\n'], ['cri-containerd.apparmor.d (enforce)\n'], [undefined]])(
  'without SELinux, nothing is labelled: %j',
  (current) => {
    const other = context(current);
    labelForContainers(path.join(scratch, 'ours'), other);
    expect(existsSync(`${other.chcon}.calls`)).toBe(false);
  },
);

test('if it cannot be labelled, the error names the directory and the command', () => {
  const refused = context('system_u:system_r:container_t:s0', 'echo Permission denied >&2; exit 1');
  const directory = path.join(scratch, 'ours');
  expect(() => labelForContainers(directory, refused)).toThrow(
    `${directory} cannot get the SELinux type container_file_t: Permission denied. ` +
      `Run \`chcon --type container_file_t ${directory}\` as root on the node.`,
  );
});
