import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { mustRun, runCommand } from '@nvidia-virtual/toolchain/command';
import { cacheDirectory } from '@nvidia-virtual/toolchain/repository';

/** The newest nvidia-smi of Debian: 550. */
const SUITE = 'trixie';
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';

/**
 * Path of the nvidia-smi of Debian's non-free package, unpacked into the cache. Debian's mirror is
 * that of this machine. @returns undefined if the machine has no such mirror
 */
export async function fetchNvidiaSmi(say: (line: string) => void): Promise<string | undefined> {
  const directory = path.join(cacheDirectory(), `nvidia-smi-${SUITE}`);
  const program = path.join(directory, 'usr', 'lib', 'nvidia', 'current', 'nvidia-smi');
  if (existsSync(program)) return program;
  const mirror = await debianMirror();
  if (mirror === undefined) return undefined;
  say(`Fetching nvidia-smi of Debian ${SUITE} (once) into ${directory}`);
  mkdirSync(path.dirname(directory), { recursive: true });
  const unfinished = mkdtempSync(`${directory}.`);
  try {
    await unpack(unfinished, mirror);
    renameSync(path.join(unfinished, 'root'), directory);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
  return program;
}

/** Uses lists and a configuration of its own: the machine's have no non-free packages. */
async function unpack(directory: string, mirror: string): Promise<void> {
  const sources = path.join(directory, 'sources.list');
  writeFileSync(sources, `deb [signed-by=${KEYRING}] ${mirror} ${SUITE} non-free\n`);
  mkdirSync(path.join(directory, 'lists', 'partial'), { recursive: true });
  const options = [
    `Dir::Etc::sourcelist=${sources}`,
    'Dir::Etc::sourceparts=/dev/null',
    `Dir::State::lists=${path.join(directory, 'lists')}`,
    `Dir::Cache=${directory}`,
    'APT::Sandbox::User=root',
  ].flatMap((option) => ['-o', option]);
  await mustRun('apt-get', [...options, '-q', 'update'], { cwd: directory });
  await mustRun('apt-get', [...options, '-q', 'download', 'nvidia-smi'], { cwd: directory });
  const archive = readdirSync(directory).find((name) => name.endsWith('.deb')) ?? '';
  await mustRun('dpkg-deb', ['-x', archive, 'root'], { cwd: directory });
}

async function debianMirror(): Promise<string | undefined> {
  const words = ['indextargets', '--format', '$(SITE) $(COMPONENT)'];
  try {
    const { output } = await runCommand('apt-get', [...words, 'Created-By: Packages']);
    return /^(\S+\/debian\/?) main$/m.exec(output)?.[1];
  } catch {
    return undefined; // no apt-get
  }
}
