import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { reportFiles } from './report-files.js';

const isCheck = process.argv.includes('--check');
for (const { file, text } of reportFiles()) {
  if (!isCheck) {
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, text);
  } else if (readFileSync(file, 'utf8') !== text) {
    console.error(`${file} is not current: run node test/dist/bench/report.js`);
    process.exitCode = 1;
  }
}
