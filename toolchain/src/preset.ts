import path from 'node:path';
import { parseArgs } from 'node:util';
import { cmakeBuild } from './cmake.js';
import { runMain, ToolchainError } from './errors.js';
import { showProgress } from './progress.js';
import { ctestSuite } from './suites.js';
import { closingLine } from './test-counts.js';

const USAGE =
  'Usage: node toolchain/dist/preset.js PRESET [--only DIRECTORY] [--test NAME]... [--build] ' +
  '  (the C++ tests of one CMake preset, one directory, or one program: worker/races; --build: ' +
  'builds them, and runs none)';

await runMain(async () => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      only: { type: 'string' },
      test: { type: 'string', multiple: true },
      build: { type: 'boolean' },
      help: { type: 'boolean' },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const [preset, ...rest] = positionals;
  if (preset === undefined || rest.length > 0) throw new ToolchainError(USAGE);
  const progress = showProgress(`Building ${preset}`);
  // The last part of a test's directory is AREA. A test AREA/NAME that has a program of its own has
  // AREA_NAME_test.
  const directories = values.only === undefined ? [] : [values.only];
  const single = values.test ?? [];
  const targets = [
    ...directories.map((directory) => `${directory}/all`),
    ...single.map((test) => `${test.replace('/', '_')}_test`),
  ];
  const names = [
    ...directories.map((directory) => `^${path.basename(directory)}/`),
    ...single.map((test) => `^${test}$`),
  ];
  await cmakeBuild({ preset, ...(targets.length > 0 ? { targets } : {}) }, progress);
  progress.finish();
  if (values.build) return 0;
  const counts = await ctestSuite(
    preset,
    ...(names.length > 0 ? ['-R', names.join('|')] : []),
  ).run();
  console.log(closingLine(counts));
  return counts.failed > 0 ? 1 : 0;
});
