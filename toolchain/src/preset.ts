import path from 'node:path';
import { parseArgs } from 'node:util';
import { cmakeBuild } from './cmake.js';
import { runMain, ToolchainError } from './errors.js';
import { showProgress } from './progress.js';
import { ctestSuite } from './suites.js';
import { closingLine } from './test-counts.js';

const USAGE = 'Usage: node toolchain/dist/preset.js PRESET [--only DIRECTORY]   (the C++ tests of one CMake preset, or of one directory)';

await runMain(async () => {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { only: { type: 'string' }, help: { type: 'boolean' } } });
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const [preset, ...rest] = positionals;
  if (preset === undefined || rest.length > 0) throw new ToolchainError(USAGE);
  const progress = showProgress(`Building ${preset}`);
  await cmakeBuild({ preset, ...(values.only ? { targets: [`${values.only}/all`] } : {}) }, progress);
  progress.finish();
  // Tests are named by the last part of their directory.
  const counts = await ctestSuite(preset, values.only && `^${path.basename(values.only)}/`).run();
  console.log(closingLine(counts));
  return counts.failed > 0 ? 1 : 0;
});
