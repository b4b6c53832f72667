import { cmakeBuild } from './cmake.js';
import { fetchedCompiler } from './cuda-compiler.js';
import { runMain } from './errors.js';
import { showProgress } from './progress.js';

/**
 * Compiles what we declare of the driver's ABI against the cuda.h of exactly the release that it
 * was written for.
 */
await runMain(async () => {
  const { include } = await fetchedCompiler((line) => console.log(line));
  const progress = showProgress('Comparing our declarations with cuda.h');
  await cmakeBuild(
    {
      preset: 'debug',
      directory: 'abi',
      definitions: [`-DCUDA_INCLUDE=${include}`],
      targets: ['abi_check'],
    },
    progress,
  );
  progress.finish();
  return 0;
});
