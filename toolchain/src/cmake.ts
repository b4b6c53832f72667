import { runCommand } from './command.js';
import { ToolchainError } from './errors.js';
import type { Progress } from './progress.js';
import { buildDirectory } from './repository.js';

interface CMakeBuild {
  readonly preset: string;
  /** In addition to the preset's: `-DNAME=VALUE`. */
  readonly definitions?: readonly string[];
  /** Default: everything. */
  readonly targets?: readonly string[];
  /** Under build/; default: the preset's name. */
  readonly directory?: string;
}

/** Configures and builds. @throws ToolchainError with the compiler's output */
export async function cmakeBuild(build: CMakeBuild, progress: Progress): Promise<string> {
  const directory = buildDirectory(build.directory ?? build.preset);
  progress.note(`configuring ${build.preset}`);
  await must('cmake', ['--preset', build.preset, '-B', directory, ...(build.definitions ?? [])]);
  const targets = build.targets ? ['--target', ...build.targets] : [];
  await must('cmake', ['--build', directory, ...targets], (line) =>
    showNinjaProgress(line, progress),
  );
  return directory;
}

function showNinjaProgress(line: string, progress: Progress): void {
  const step = /^\[(\d+)\/(\d+)\] /.exec(line);
  if (step) progress.step(Number(step[1]), Number(step[2]));
}

async function must(
  command: string,
  args: readonly string[],
  onLine: (line: string) => void = () => {},
): Promise<void> {
  const { status, output } = await runCommand(command, args, { onLine });
  if (status !== 0)
    throw new ToolchainError(
      `\`${command} ${args.join(' ')}\` failed:\n${withoutProgress(output)}`,
    );
}

/** Removes the progress lines of successful steps. */
function withoutProgress(output: string): string {
  return output
    .split('\n')
    .filter((line) => !/^\[\d+\/\d+\] /.test(line))
    .join('\n');
}
