import { existsSync } from 'node:fs';
import path from 'node:path';
import { cmakeBuild } from './cmake.js';
import { fetchedCompiler } from './cuda-compiler.js';
import { runMain } from './errors.js';
import { showProgress } from './progress.js';
import { fetchPythonPackages } from './python-packages.js';
import { cacheDirectory } from './repository.js';

/** Each release has its own directory in the cache. */
const NVML_RELEASE = '13.0.87';

/**
 * Compiles our declarations of the driver's and of NVML's ABI against cuda.h and nvml.h of the
 * release for which they were written.
 */
await runMain(async () => {
  const { include } = await fetchedCompiler((line) => console.log(line));
  const nvmlInclude = await fetchNvmlHeader();
  const progress = showProgress('Comparing our declarations with cuda.h and nvml.h');
  await cmakeBuild(
    {
      preset: 'debug',
      directory: 'abi',
      definitions: [`-DCUDA_INCLUDE=${include}`, `-DNVML_INCLUDE=${nvmlInclude}`],
      targets: ['abi_check', 'nvml_abi_check'],
    },
    progress,
  );
  progress.finish();
  return 0;
});

async function fetchNvmlHeader(): Promise<string> {
  const directory = path.join(cacheDirectory(), `nvml-${NVML_RELEASE}`);
  if (!existsSync(directory))
    await fetchPythonPackages(directory, [`nvidia-nvml-dev==${NVML_RELEASE}`]);
  return path.join(directory, 'nvidia', 'cu13', 'include');
}
