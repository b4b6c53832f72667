import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { runChild } from '../child.js';
import { compileProgram } from '../cuda-program.js';
import { GPU_PROXY } from '../paths.js';
import { Tally } from '../tally.js';

const PROGRAMS = ['scans', 'sorts', 'selections', 'segments', 'synchronization'];
/** Only PTX: the simulated GPU runs nothing else, and the assembler would take most of the time. */
const FLAGS = ['-gencode', 'arch=compute_90,code=compute_90'];
const HELP = `Runs algorithms of CUB, Thrust and libcu++ on the simulated GPU and compares the \
results with the host's.
  --only LIST     of ${PROGRAMS.join(', ')} (default: all)
  --threads LIST  numbers of threads that run kernels (default: 2,4)
  --repeat N      how often each case runs (default: 2)
  --percent N     of the usual number of elements (default: 100)
  --jobs N        programs compiled at a time (default: 2)
  --seconds N     timeout of a program (default: 600)`;

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: PROGRAMS.join(',') },
    threads: { type: 'string', default: '2,4' },
    repeat: { type: 'string', default: '2' },
    percent: { type: 'string', default: '100' },
    jobs: { type: 'string', default: '2' },
    seconds: { type: 'string', default: '600' },
    help: { type: 'boolean', default: false },
  },
});

if (values.help) console.log(HELP);
else process.exitCode = await main();

async function main(): Promise<number> {
  const names = values.only.split(',');
  const unknown = names.filter((name) => !PROGRAMS.includes(name));
  if (unknown.length > 0)
    throw new Error(`--only ${unknown.join(',')}: the programs are ${PROGRAMS.join(', ')}`);
  const programs = await compileAll(names);
  const tally = new Tally();
  for (const threads of values.threads.split(',')) {
    for (const [name, program] of programs) await runProgram(tally, name, program, threads);
  }
  return tally.close();
}

async function compileAll(names: readonly string[]): Promise<Map<string, string>> {
  const programs = new Map<string, string>();
  const pending = [...names];
  const compileNext = async () => {
    for (let name = pending.shift(); name !== undefined; name = pending.shift()) {
      programs.set(name, await compileProgram('libraries', name, FLAGS));
    }
  };
  await Promise.all(Array.from({ length: Number(values.jobs) }, compileNext));
  return programs;
}

/** Counts each case of a program. Its output before the closing line is the list of errors. */
async function runProgram(
  tally: Tally,
  name: string,
  program: string,
  threads: string,
): Promise<void> {
  const cwd = mkdtempSync(path.join(tmpdir(), 'libraries-'));
  const started = Date.now();
  try {
    const args = [
      GPU_PROXY,
      'run',
      '--backend',
      'simulated',
      '--',
      program,
      values.repeat,
      values.percent,
    ];
    const env = { ...process.env, NVIDIA_VIRTUAL_SIMULATOR_THREADS: threads };
    const { stdout, stderr, status, timedOut } = await runChild(process.execPath, args, {
      cwd,
      env,
      seconds: Number(values.seconds),
    });
    const what = `${name}, ${threads} threads`;
    const closing = /^(\d+) passed, (\d+) failed\n$/m.exec(stdout);
    const passed = Number(closing?.[1] ?? 0);
    for (let i = 0; i < passed; ++i) tally.judge(what, []);
    const lines = stdout.slice(0, closing?.index).split('\n').filter(Boolean);
    for (const line of lines) tally.judge(what, [line]);
    if (timedOut) tally.judge(what, [`it did not end within ${values.seconds} s`]);
    else if (status !== 0 && lines.length === 0)
      tally.judge(what, [`exit status ${status}: ${stderr}`]);
    console.log(
      `${what}: ${passed} cases passed after ${Math.round((Date.now() - started) / 1000)} s`,
    );
  } finally {
    rmSync(cwd, { recursive: true, force: true });
  }
}
