import { mkdirSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { cmakeBuild } from './cmake.js';
import { runCommand } from './command.js';
import { runMain, ToolchainError } from './errors.js';
import { showProgress } from './progress.js';
import { buildDirectory, REPOSITORY } from './repository.js';

const DEFINITIONS = ['-DCMAKE_C_COMPILER=clang', '-DCMAKE_CXX_COMPILER=clang++', '-DNVIDIA_VIRTUAL_FUZZ=ON'];
const FINDINGS = path.join(buildDirectory('fuzz'), 'findings');
const CORPORA = path.join(REPOSITORY, 'test', 'fuzz', 'corpus');

/** Builds every fuzz target and runs all of them at once, each for --seconds (60). Inputs that broke one lie in build/fuzz/findings. */
await runMain(async () => {
  const { values } = parseArgs({ options: { seconds: { type: 'string', default: '60' } } });
  const progress = showProgress('Building the fuzz targets');
  const directory = await cmakeBuild(
    { preset: 'release', directory: 'fuzz', definitions: DEFINITIONS, targets: ['test/fuzz/all'] },
    progress,
  );
  progress.finish();
  const programs = path.join(directory, 'test', 'fuzz');
  const targets = readdirSync(programs).filter((name) => name.endsWith('_fuzz'));
  if (targets.length === 0) throw new ToolchainError(`${programs} has no fuzz target (a program called *_fuzz).`);
  mkdirSync(FINDINGS, { recursive: true });
  const results = await Promise.all(targets.map((target) => fuzz(path.join(programs, target), values.seconds)));
  const failed = results.filter((passed) => !passed).length;
  console.log(`${targets.length - failed} passed, ${failed} failed`);
  return failed > 0 ? 1 : 0;
});

async function fuzz(program: string, seconds: string): Promise<boolean> {
  const target = path.basename(program);
  const corpus = path.join(buildDirectory('fuzz'), 'corpus', target);
  mkdirSync(corpus, { recursive: true });
  const options = [`-max_total_time=${seconds}`, '-timeout=10', '-rss_limit_mb=4096', `-artifact_prefix=${FINDINGS}/${target}-`];
  const { status, output } = await runCommand(program, [...options, corpus, ...seedsOf(target)]);
  const summary = /^Done \d+ runs.*$/m.exec(output)?.[0] ?? output.split('\n').slice(-40).join('\n');
  console.log(`${target}: ${summary}`);
  return status === 0;
}

function seedsOf(target: string): string[] {
  return readdirSync(path.dirname(CORPORA)).includes('corpus') && readdirSync(CORPORA).includes(target) ? [path.join(CORPORA, target)] : [];
}
