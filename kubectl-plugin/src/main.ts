import { constants } from 'node:os';
import { parseCommandLine } from './command-line.js';
import { complete } from './completion.js';
import { KubectlError, PluginError } from './errors.js';
import { GpuUsage } from './gpu-usage.js';
import { VERSION } from './version.js';

/**
 * Same as `engines` in package.json. Checked at run time, because the script runs with the Node.js
 * in PATH.
 */
const OLDEST_NODE = 20;

async function main(words: readonly string[]): Promise<void> {
  const { node: version } = process.versions;
  if (Number.parseInt(version, 10) < OLDEST_NODE)
    throw new PluginError('NODE_TOO_OLD', {
      oldest: OLDEST_NODE,
      program: process.execPath,
      version,
    });
  if (words[0] === '__complete') {
    process.stdout.write(`${(await complete(words.slice(1), process.env, VERSION)).join('\n')}\n`);
    return;
  }
  const line = parseCommandLine(words, VERSION);
  if (typeof line === 'string') process.stdout.write(line);
  else
    await new GpuUsage(line, {
      out: process.stdout,
      err: process.stderr,
      environment: process.env,
    }).run();
}

// Exits when the reader of a pipe has closed it, as in `kubectl gpu-usage -w | head`.
process.stdout.on('error', ({ code }: NodeJS.ErrnoException) =>
  process.exit(code === 'EPIPE' ? 0 : 1),
);

// Exiting also ends kubectl.
for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => process.exit(128 + constants.signals[signal]));

main(process.argv.slice(2)).catch((error: unknown) => {
  if (error instanceof KubectlError) process.stderr.write(`${error.message}\n`);
  else if (error instanceof PluginError) process.stderr.write(`error: ${error.message}\n`);
  else throw error;
  process.exitCode = 1;
});
