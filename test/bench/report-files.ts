import path from 'node:path';
import { REPOSITORY } from '../paths.js';
import { renderPage } from './page.js';
import { plots } from './plots.js';
import { committedResults } from './results.js';

/** Writes docs/performance.md and its charts from the committed measurements. */
export function reportFiles(): { file: string; text: string }[] {
  const docs = path.join(REPOSITORY, 'docs');
  const results = committedResults();
  return [
    { file: path.join(docs, 'performance.md'), text: renderPage(results) },
    ...plots(results).map(({ file, svg }) => ({ file: path.join(docs, file), text: svg })),
  ];
}
