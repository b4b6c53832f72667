import { existsSync } from 'node:fs';
import path from 'node:path';
import { cmakeBuild } from './cmake.js';
import { PORTABLE_PARTS } from './native-parts.js';
import type { Progress } from './progress.js';
import { fetchPythonPackages } from './python-packages.js';
import { cacheDirectory } from './repository.js';

export const ZIG_VERSION = '0.17.0';
const PORTABLE_PRESET = 'release-portable';

/** Builds these parts for glibc 2.17 and newer. Returns the build directory. */
export async function portableBuild(
  progress: Progress,
  targets: readonly string[] = Object.keys(PORTABLE_PARTS),
): Promise<string> {
  const zig = await fetchZig((line) => progress.note(line));
  return cmakeBuild(
    {
      preset: PORTABLE_PRESET,
      definitions: [`-DNVIDIA_VIRTUAL_ZIG=${zig}`],
      targets,
    },
    progress,
  );
}

/** zig is clang with the headers and stubs of every glibc since 2.17. */
export async function fetchZig(say: (line: string) => void = () => {}): Promise<string> {
  const directory = path.join(cacheDirectory(), `zig-${ZIG_VERSION}`);
  if (!existsSync(directory)) {
    say(`fetching zig ${ZIG_VERSION} (some 100 MB, once) into ${directory}`);
    await fetchPythonPackages(directory, [`ziglang==${ZIG_VERSION}`]);
  }
  return path.join(directory, 'ziglang', 'zig');
}
