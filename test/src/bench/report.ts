import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { REPOSITORY } from '../paths.js';
import { renderPage } from './page.js';
import { committedResults } from './results.js';

const PAGE = path.join(REPOSITORY, 'docs', 'performance.md');
const page = renderPage(committedResults());

if (process.argv.includes('--check')) {
  const current = existsSync(PAGE) && readFileSync(PAGE, 'utf8') === page;
  if (!current) console.error('docs/performance.md is not what test/bench/results/ says: run node test/dist/bench/report.js');
  process.exitCode = current ? 0 : 1;
} else {
  writeFileSync(PAGE, page);
}
