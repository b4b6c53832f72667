import { cmakeBuild } from './cmake.js';
import { fetchedCompiler } from './cuda-compiler.js';
import { runMain } from './errors.js';
import { showProgress } from './progress.js';

/**
 * Compiles our declarations of the driver's ABI against the cuda.h of the release for which they
 * were written.
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
