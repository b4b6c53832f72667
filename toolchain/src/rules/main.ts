import { runMain } from '../errors.js';
import { commitSubjects } from './commit-subjects.js';
import { environmentPage } from './environment-page.js';
import { includeCircles } from './include-circles.js';
import { exportedSymbols, neededLibraries } from './interposer.js';
import { knownHosts } from './known-hosts.js';
import { logSentences } from './log-sentences.js';
import { noOutput } from './no-output.js';
import { noSleep } from './no-sleep.js';
import { oneVersion } from './one-version.js';
import { packageImports } from './package-imports.js';
import { commentWidth, sentenceLength, tableCells } from './prose.js';

const RULES = [
  noOutput,
  noSleep,
  knownHosts,
  exportedSymbols,
  neededLibraries,
  environmentPage,
  logSentences,
  commitSubjects,
  oneVersion,
  packageImports,
  commentWidth,
  sentenceLength,
  tableCells,
  includeCircles,
];

/** Runs the project's own rules, part of `npm run check`. */
await runMain(async () => {
  let broken = 0;
  for (const rule of RULES) {
    const problems = await rule.check();
    console.log(`${problems.length === 0 ? 'holds ' : 'BROKEN'}  ${rule.law}`);
    for (const problem of problems) console.log(`        ${problem}`);
    if (problems.length > 0) broken++;
  }
  return broken === 0 ? 0 : 1;
});
