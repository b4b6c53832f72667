import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { resultFile } from '../bench/results.js';
import { type Outcome, runChild } from '../child.js';
import { GPU_PROXY, REPOSITORY } from '../paths.js';
import { Tally } from '../tally.js';
import { buildLlama, LLAMA } from './build.js';
import { OPERATIONS } from './operations.js';

const HELP = `Builds llama.cpp and runs it on the simulated GPU through the product: tokens from
small models of random weights, and ggml's own comparison of operations with those of the CPU.
  --build         only build
  --only LIST     of generate, operations (default: both)
  --operations L  ggml's names of operations (default: those in test/llama/operations.ts)
  --json FILE     write the counts, for test/bench/results/llama.json
  --seconds N     timeout of generate, and of each operation (default: 600)`;

const { values } = parseArgs({
  options: {
    build: { type: 'boolean', default: false },
    only: { type: 'string', default: 'generate,operations' },
    operations: { type: 'string', default: Object.keys(OPERATIONS).join(',') },
    json: { type: 'string' },
    seconds: { type: 'string', default: '600' },
    help: { type: 'boolean', default: false },
  },
});

if (values.help) console.log(HELP);
else process.exitCode = await main();

async function main(): Promise<number> {
  const built = await buildLlama();
  if (values.build) return 0;
  const tally = new Tally();
  const parts = values.only.split(',');
  const programs = [];
  if (parts.includes('generate')) {
    const problems = await generate();
    tally.judge('generate', problems);
    const failed = problems.length > 0 ? 1 : 0;
    const what = '32 tokens by models of f16, q8_0 and q4_k, with CUDA graphs and without';
    programs.push({ name: LLAMA, what, passed: 1 - failed, failed });
  }
  if (parts.includes('operations')) {
    const counts = { passed: 0, failed: 0 };
    for (const operation of values.operations.split(',')) {
      const { passed, failed } = await compareOperation(tally, built, operation);
      counts.passed += passed;
      counts.failed += failed;
    }
    const what = "ggml's test-backend-ops: operations as on the CPU";
    programs.push({ name: LLAMA, what, ...counts });
  }
  if (values.json) writeFileSync(values.json, resultFile(programs));
  return tally.close();
}

/** The program compares with the CPU. Here remains that graphs are used and change nothing. */
async function generate(): Promise<string[]> {
  const cwd = mkdtempSync(path.join(tmpdir(), 'llama-'));
  try {
    const trace = path.join(cwd, 'trace.txt');
    const program = path.join(REPOSITORY, 'test', 'bench', 'frameworks', 'llama_generate.py');
    const outcome = await onSimulatedGpu(['--trace', trace], ['python3', program], cwd);
    console.log(outcome.stderr.trimEnd());
    const problems = failures(outcome);
    if (problems.length > 0) return problems;
    if (!readFileSync(trace, 'utf8').includes('cuGraphLaunch(')) problems.push('no graph was used');
    const { results } = JSON.parse(outcome.stdout) as { results: Record<string, string> };
    for (const [kind, logits] of Object.entries(results))
      if (logits !== (results[`${kind} without graphs`] ?? logits))
        problems.push(`${kind}: the logits differ without graphs`);
    return problems;
  } finally {
    rmSync(cwd, { recursive: true, force: true });
  }
}

async function compareOperation(tally: Tally, built: string, operation: string) {
  const started = Date.now();
  const program = path.join(built, 'llama_cpp', 'lib', 'test-backend-ops');
  const filter = OPERATIONS[operation] ? ['-p', OPERATIONS[operation]] : [];
  const command = [program, 'test', '-o', operation, ...filter];
  const outcome = await onSimulatedGpu([], command, tmpdir());
  const [, passed = '0'] = /(\d+)\/\d+ tests passed/.exec(outcome.stdout) ?? [];
  const different = outcome.stdout.split('\n').filter((line) => line.includes('FAIL'));
  const problems = different.length > 0 ? different : failures(outcome);
  for (let i = 0; i < Number(passed); ++i) tally.judge(operation, []);
  for (const problem of problems) tally.judge(operation, [problem]);
  const seconds = Math.round((Date.now() - started) / 1000);
  console.log(`${operation}: ${passed} passed after ${seconds} s`);
  return { passed: Number(passed), failed: problems.length };
}

function failures({ stdout, stderr, status, timedOut }: Outcome): string[] {
  if (timedOut) return [`it did not end within ${values.seconds} s`];
  return status === 0 ? [] : [`exit status ${status}:\n${`${stdout}${stderr}`.slice(-2000)}`];
}

function onSimulatedGpu(
  options: readonly string[],
  command: readonly string[],
  cwd: string,
): Promise<Outcome> {
  const run = ['run', '--backend', 'simulated', '--memory', '8GiB', ...options, '--', ...command];
  const seconds = Number(values.seconds);
  return runChild(process.execPath, [GPU_PROXY, ...run], { cwd, env: process.env, seconds });
}
