import { type SpawnOptions, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { ToolchainError } from './errors.js';
import { REPOSITORY } from './repository.js';

export interface CommandResult {
  readonly status: number;
  /** Standard output and standard error, interleaved. */
  readonly output: string;
}

export interface CommandOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  /** Called for each line of output. */
  readonly onLine?: (line: string) => void;
  /** Aborting sends SIGTERM to the command. */
  readonly signal?: AbortSignal;
  /** Runs in its own process group, so that Ctrl-C does not reach it. */
  readonly detached?: boolean;
  /** Runs with the lowest priority, beside something that waits for a processor. */
  readonly inBackground?: boolean;
}

/**
 * Runs a command and returns its output. A command that cannot be started has status 127, as in a
 * shell.
 */
export function runCommand(
  command: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<CommandResult> {
  return new Promise((resolve) => {
    const nice = options.inBackground ? ['-n', '19', command] : [];
    const child = spawn(options.inBackground ? 'nice' : command, [...nice, ...args], {
      ...spawnOptions(options),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    const take = (line: string) => {
      output += `${line}\n`;
      options.onLine?.(line);
    };
    for (const stream of [child.stdout, child.stderr] as Readable[])
      createInterface({ input: stream }).on('line', take);
    child.on(
      'error',
      (error) => child.pid === undefined && resolve({ status: 127, output: `${error.message}\n` }),
    );
    child.once('close', (status) => resolve({ status: status ?? 1, output }));
  });
}

/**
 * Runs a command that must succeed, and returns its output.
 * @param failure what cannot be done then: begins the message, for example `x could not be built`
 * @throws ToolchainError with the output
 */
export async function mustRun(
  command: string,
  args: readonly string[],
  { failure, ...options }: CommandOptions & { readonly failure?: string } = {},
): Promise<string> {
  const { status, output } = await runCommand(command, args, options);
  if (status === 0) return output;
  const begin = failure === undefined ? '' : `${failure}: `;
  const place = options.cwd === undefined ? '' : ` in ${options.cwd}`;
  throw new ToolchainError(`${begin}\`${command} ${args.join(' ')}\` failed${place}:\n${output}`);
}

/** Runs a command with output to this terminal. */
export function runVisibly(
  command: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<number> {
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      ...spawnOptions(options),
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    child.once('error', (error) => {
      process.stderr.write(`${error.message}\n`);
      resolve(127);
    });
    child.once('close', (status) => resolve(status ?? 1));
  });
}

function spawnOptions({
  cwd = REPOSITORY,
  env = process.env,
  signal,
  detached = false,
}: CommandOptions): SpawnOptions {
  return { cwd, env, detached, ...(signal && { signal }) };
}
