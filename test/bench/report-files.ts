import path from 'node:path';
import { REPOSITORY } from '../paths.js';
import { renderCompatibility } from './compatibility.js';
import { frameworkPrograms } from './framework-programs.js';
import { renderPage } from './page.js';
import { plots } from './plots.js';
import { committedResults, committedRuntimes, committedSimulated } from './results.js';

/** docs/performance.md with its charts and docs/compatibility.md, from the committed results. */
export function reportFiles(): { file: string; text: string }[] {
  const docs = path.join(REPOSITORY, 'docs');
  const results = committedResults();
  return [
    { file: path.join(docs, 'performance.md'), text: renderPage(results) },
    {
      file: path.join(docs, 'compatibility.md'),
      text: renderCompatibility({
        programs: frameworkPrograms(),
        frameworks: results.frameworks,
        runtimes: committedRuntimes(),
        simulated: committedSimulated(),
      }),
    },
    ...plots(results).map(({ file, svg }) => ({ file: path.join(docs, file), text: svg })),
  ];
}
