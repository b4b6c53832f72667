import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { cmakeBuild } from './cmake.js';
import { mustRun, runCommand } from './command.js';
import { cudaCompiler } from './cuda-compiler.js';
import { runMain, ToolchainError } from './errors.js';
import { showProgress } from './progress.js';
import { buildDirectory, REPOSITORY } from './repository.js';

const DEFINITIONS = [
  '-DCMAKE_C_COMPILER=clang',
  '-DCMAKE_CXX_COMPILER=clang++',
  '-DNVIDIA_VIRTUAL_FUZZ=ON',
];
const FINDINGS = path.join(buildDirectory('fuzz'), 'findings');
const SEEDS = path.join(buildDirectory('fuzz'), 'seeds');
const KERNELS = path.join(REPOSITORY, 'test', 'fatbin', 'kernels.cu');
const CORPORA = path.join(REPOSITORY, 'test', 'fuzz', 'corpus');

/**
 * Builds all fuzz targets and runs them in parallel, each for --seconds (60). Crashing inputs are
 * saved in build/fuzz/findings. A call of the driver that never accepts a frame is a failure, too.
 * Requires the release build, whose simulated driver image_fuzz loads. With --build, runs none.
 */
await runMain(async () => {
  const { values } = parseArgs({
    options: { seconds: { type: 'string', default: '60' }, build: { type: 'boolean' } },
  });
  const progress = showProgress('Building the fuzz targets');
  const directory = await cmakeBuild(
    { preset: 'release', directory: 'fuzz', definitions: DEFINITIONS, targets: ['test/fuzz/all'] },
    progress,
  );
  progress.finish();
  if (values.build) return 0;
  const programs = path.join(directory, 'test', 'fuzz');
  const targets = readdirSync(programs).filter((name) => name.endsWith('_fuzz'));
  if (targets.length === 0)
    throw new ToolchainError(`${programs} has no fuzz target (a program called *_fuzz).`);
  mkdirSync(FINDINGS, { recursive: true });
  await compileImages();
  const results = await Promise.all(
    targets.map((target) => fuzz(path.join(programs, target), values.seconds)),
  );
  const failed = results.filter((passed) => !passed).length;
  console.log(`${targets.length - failed} passed, ${failed} failed`);
  return failed > 0 ? 1 : 0;
});

async function fuzz(program: string, seconds: string): Promise<boolean> {
  const target = path.basename(program);
  const corpus = path.join(buildDirectory('fuzz'), 'corpus', target);
  mkdirSync(corpus, { recursive: true });
  const options = [
    `-max_total_time=${seconds}`,
    '-max_len=65536',
    '-timeout=10',
    '-rss_limit_mb=4096',
    `-artifact_prefix=${FINDINGS}/${target}-`,
  ];
  const { status, output } = await runCommand(program, [...options, corpus, ...seedsOf(target)]);
  const summary =
    /^Done \d+ runs.*$/m.exec(output)?.[0] ?? output.split('\n').slice(-40).join('\n');
  console.log(`${target}: ${summary}`);
  return status === 0 && reachesAll(target, output);
}

/** dispatch_fuzz says which calls of the driver have accepted a frame. */
function reachesAll(target: string, output: string): boolean {
  const calls = /^\d+ of \d+ calls accepted a frame.*$/m.exec(output)?.[0];
  if (calls !== undefined) console.log(`${target}: ${calls}`);
  const never = [...output.matchAll(/^never accepted: (.*)$/gm)].map(([, name]) => name);
  if (never.length > 0) console.log(`${target}: no frame was accepted of ${never.join(', ')}`);
  return never.length === 0;
}

/** Images as nvcc makes them, for image_fuzz to begin with. */
async function compileImages(): Promise<void> {
  const { nvcc } = await cudaCompiler((line) => console.log(line));
  const directory = path.join(SEEDS, 'image_fuzz');
  mkdirSync(directory, { recursive: true });
  const modes = ['none', 'speed', 'size'].map((mode) => [
    '--fatbin',
    `--compress-mode=${mode}`,
    '-gencode',
    'arch=compute_80,code=[sm_80,compute_80]',
  ]);
  const ways = [
    ['-ptx'],
    ['-ptx', '-lineinfo'],
    ['-cubin', '-arch=sm_90'],
    ['-cubin', '-arch=sm_90', '-rdc=true'],
    ...modes,
  ];
  for (const [index, way] of ways.entries()) {
    await mustRun(nvcc, [...way, KERNELS, '-o', path.join(directory, String(index))]);
  }
}

function seedsOf(target: string): string[] {
  return [CORPORA, SEEDS]
    .map((directory) => path.join(directory, target))
    .filter((directory) => existsSync(directory));
}
