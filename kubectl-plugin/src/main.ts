import { parseCommandLine } from './command-line.js';
import { complete } from './completion.js';
import { PluginError } from './errors.js';
import { GpuUsage } from './gpu-usage.js';
import { VERSION } from './version.js';

async function main(words: readonly string[]): Promise<void> {
  if (words[0] === '__complete') {
    process.stdout.write(`${(await complete(words.slice(1), process.env, VERSION)).join('\n')}\n`);
    return;
  }
  const line = parseCommandLine(words, VERSION);
  if (typeof line === 'string') process.stdout.write(line);
  else await new GpuUsage(line, { out: process.stdout, err: process.stderr, environment: process.env }).run();
}

// `kubectl gpu-usage -w | head` ends when head has seen enough.
process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => process.exit(code === 'EPIPE' ? 0 : 1));

main(process.argv.slice(2)).catch((error: unknown) => {
  if (!(error instanceof PluginError)) throw error;
  process.stderr.write(`error: ${error.message}\n`);
  process.exitCode = 1;
});
