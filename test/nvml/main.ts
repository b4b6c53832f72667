import { existsSync } from 'node:fs';
import path from 'node:path';
import { fetchPythonPackages, fetchPythonSource } from '@nvidia-virtual/toolchain/python-packages';
import { cacheDirectory } from '@nvidia-virtual/toolchain/repository';
import { runChild } from '../child.js';
import { GPU_PROXY, REPOSITORY } from '../paths.js';
import { Tally } from '../tally.js';
import { type Client, nvidiaSmi, pythonClients } from './clients.js';
import { fetchNvidiaSmi } from './nvidia-smi.js';

/** A change of the list needs another name in the cache. */
const CACHE = 'nvml-clients-1';
const PACKAGES = [
  'nvidia-ml-py==13.615.71',
  'nvitop==1.7.2',
  'psutil==7.2.2',
  'blessed==1.52.0',
  'jinxed==2.1.0',
  'wcwidth==0.9.4',
];
/** Published as source only. */
const GPUSTAT = 'gpustat==1.1.1';
const BENCH = path.join(REPOSITORY, 'test', 'bench', 'nvml.py');
const SCRIPTS = path.join(REPOSITORY, 'test', 'nvml');
const SECONDS = 120;

process.exitCode = await main();

/**
 * Real clients of NVML see the slice through the product, beside a program that computes on the
 * simulated GPU.
 */
async function main(): Promise<number> {
  const tally = new Tally();
  await compareWithGpu(tally);
  const say = (line: string) => console.log(line);
  const smi = await fetchNvidiaSmi(say);
  if (smi === undefined) tally.skip('nvidia-smi', 'this machine has no Debian mirror');
  const { packages, gpustat } = await fetchPackages();
  const clients = [
    ...(smi === undefined ? [] : nvidiaSmi(smi)),
    ...pythonClients(packages, gpustat, SCRIPTS),
  ];
  const commands = JSON.stringify(clients.map(({ command }) => command));
  const run = ['run', '--backend', 'simulated', '--memory', '2GiB', '--'];
  const output = await runAll([...run, 'python3', BENCH, '--compute', commands]);
  const outputs = output.split(/^\$ .*$/m).slice(1);
  clients.forEach((client, index) => {
    tally.judge(client.what, judge(client, outputs[index] ?? output));
  });
  return tally.close();
}

/** The answers of the simulated NVML arrive as they are. */
async function compareWithGpu(tally: Tally): Promise<void> {
  const args = [BENCH, '--backend', 'simulated', '--smi', 'true'];
  const options = { cwd: REPOSITORY, env: process.env, seconds: SECONDS };
  const { status, stdout, stderr } = await runChild('python3', args, options);
  tally.judge('answers of NVML', status === 0 ? [] : [`${stdout}${stderr}`]);
}

async function runAll(args: readonly string[]): Promise<string> {
  const options = { cwd: REPOSITORY, env: process.env, seconds: SECONDS };
  const outcome = await runChild(process.execPath, [GPU_PROXY, ...args], options);
  return outcome.stdout + outcome.stderr;
}

function judge({ expected, status = 0 }: Client, output: string): string[] {
  const missing = expected.filter((each) => !each.test(output));
  const problems = missing.map((each) => `it does not print ${each}`);
  if (!output.includes(`\nstatus ${status}\n`)) problems.push(`its status is not ${status}`);
  return problems.length > 0 ? [...problems, output] : [];
}

async function fetchPackages(): Promise<{ packages: string; gpustat: string }> {
  const packages = path.join(cacheDirectory(), 'suites', CACHE);
  const gpustat = path.join(cacheDirectory(), 'suites', GPUSTAT.replace('==', '-source-'));
  if (!existsSync(packages)) await fetchPythonPackages(packages, PACKAGES);
  if (!existsSync(gpustat)) await fetchPythonSource(gpustat, GPUSTAT);
  return { packages, gpustat };
}
