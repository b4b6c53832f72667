import { writeFileSync } from 'node:fs';
import { runMain } from '../errors.js';
import { chartPages } from './pages.js';

/** Writes the pages that are generated from the comments of the chart's values.yaml. */
await runMain(async () => {
  for (const { file, text } of chartPages()) writeFileSync(file, text);
  return 0;
});
