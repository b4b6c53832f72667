import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { fetchPythonPackages } from '@nvidia-virtual/toolchain/python-packages';
import { cacheDirectory } from '@nvidia-virtual/toolchain/repository';
import { runChild } from '../child.js';
import { GPU_PROXY, REPOSITORY } from '../paths.js';
import { Tally } from '../tally.js';
import { CASES, type Case, type Release } from './releases.js';

const HELP = `Runs a program with shared CUDA runtimes of several releases on the simulated GPU.
  --json FILE  write the results, for test/bench/results/runtimes.json`;

const PROGRAM = path.join(REPOSITORY, 'test', 'runtimes', 'program.py');

/** Calls that a successful run makes. */
const CALLS = [
  'cudaGetDeviceCount',
  'cudaMalloc',
  'cudaMemcpy',
  'cudaLaunchKernel',
  'cudaDeviceSynchronize',
  'cudaFree',
];

/** What program.py prints. */
interface Printed {
  readonly runtime: number;
  readonly driver: number;
  readonly right: boolean;
  readonly statuses: Readonly<Record<string, string>>;
}

const { values } = parseArgs({ options: { json: { type: 'string' }, help: { type: 'boolean' } } });
if (values.help) console.log(HELP);
else process.exitCode = await main();

async function main(): Promise<number> {
  const tally = new Tally();
  const runtimes = [];
  for (const one of CASES) {
    const { release, driver, expected } = one;
    const { printed, output } = await play(one, await fetchRelease(release));
    const problems = printed ? judge(printed, one) : [output];
    tally.judge(`CUDA runtime ${release.name} on a driver of CUDA ${driver}`, problems);
    const status = printed?.statuses['cudaGetDeviceCount'] ?? 'failed';
    runtimes.push({ release: release.name, driver, expected, status, right: printed?.right });
  }
  const date = new Date().toISOString().slice(0, 10);
  if (values.json) writeFileSync(values.json, `${JSON.stringify({ date, runtimes }, null, 2)}\n`);
  return tally.close();
}

/** The path of libcudart. The package is downloaded once. */
async function fetchRelease({ name, requirement, library }: Release): Promise<string> {
  const directory = path.join(cacheDirectory(), 'runtimes', requirement.replace('==', '-'));
  if (!existsSync(directory)) {
    console.log(`Fetching the CUDA runtime ${name} (once) into ${directory}`);
    await fetchPythonPackages(directory, [requirement]);
  }
  return path.join(directory, library);
}

function judge({ runtime, driver, right, statuses }: Printed, wanted: Case): string[] {
  const problems: string[] = [];
  const check = (what: string, got: unknown, expected: unknown) => {
    if (got !== expected) problems.push(`${what} is ${String(got)}, not ${String(expected)}`);
  };
  const works = wanted.expected === 'cudaSuccess';
  check('the version of the runtime', runtime, numbered(wanted.release.name));
  check('the version of the driver', driver, numbered(wanted.driver));
  check('whether it computed right values', right, works);
  for (const call of works ? CALLS : CALLS.slice(0, 2))
    check(call, statuses[call], wanted.expected);
  return problems;
}

/** 12040 for 12.4 */
function numbered(version: string): number {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return 1000 * major + 10 * minor;
}

/**
 * The program finds the proxy through a link beside a page like that of a node, because a private
 * simulated GPU has no NVML.
 */
async function play({ driver }: Case, library: string) {
  const directory = mkdtempSync(path.join(tmpdir(), 'runtime-'));
  try {
    const link = path.join(directory, 'gpu.sock');
    writeFileSync(`${link}.nvml`, page(driver));
    const start = 'ln -s "$NVIDIA_VIRTUAL_SOCKET" "$0"; NVIDIA_VIRTUAL_SOCKET="$0" exec "$@"';
    const program = ['sh', '-c', start, link, 'python3', PROGRAM, library];
    const args = [GPU_PROXY, 'run', '--backend', 'simulated', '--', ...program];
    const env = { ...process.env, NVIDIA_VIRTUAL_SIMULATED_DRIVER_VERSION: driver };
    const outcome = await runChild(process.execPath, args, { cwd: directory, env, seconds: 60 });
    const line = outcome.stdout.split('\n').find((text) => text.startsWith('{'));
    const printed = line === undefined ? undefined : (JSON.parse(line) as Printed);
    return { printed, output: `status ${outcome.status}\n${outcome.stdout}${outcome.stderr}` };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function page(driver: string): string {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32LE(numbered(driver));
  const answer = `nvmlSystemGetCudaDriverVersion_v2 0 ${bytes.toString('hex')}`;
  return `nvidia-virtual-gpus 1\nsystem ${answer}\n`;
}
