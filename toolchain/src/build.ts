import { cmakeBuild } from './cmake.js';
import { runMain } from './errors.js';
import { ensurePrerequisites } from './prerequisites.js';
import { showProgress } from './progress.js';

/**
 * `npm run build`: builds the native parts. TypeScript is compiled already, including this file.
 */
await runMain(async () => {
  await ensurePrerequisites();
  const progress = showProgress('Building the native parts');
  await cmakeBuild({ preset: 'release' }, progress);
  progress.finish();
  return 0;
});
