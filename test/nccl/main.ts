import { existsSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { fetchPythonPackages } from '@nvidia-virtual/toolchain/python-packages';
import { cacheDirectory } from '@nvidia-virtual/toolchain/repository';
import { resultFile } from '../bench/results.js';
import { runChild } from '../child.js';
import { compileProgram } from '../cuda-program.js';
import { GPU_PROXY } from '../paths.js';
import { Tally } from '../tally.js';

const VERSION = '2.28.9';
const HELP = `Runs collectives of NCCL ${VERSION} on two simulated GPUs through the product.
  --json FILE  write the counts, for test/bench/results/nccl.json`;

/**
 * NCCL has PTX only for compute capability 12.0. Its functions need 254 registers, so that a block
 * has at most 256 threads.
 */
const ENVIRONMENT = {
  NVIDIA_VIRTUAL_SIMULATED_COMPUTE_CAPABILITY: '12.0',
  NCCL_NTHREADS: '128',
  NCCL_LL128_NTHREADS: '160',
  NCCL_NVLS_ENABLE: '0',
  NCCL_IB_DISABLE: '1',
  NCCL_SOCKET_IFNAME: 'lo',
  NCCL_DEBUG: 'WARN',
};
const GPUS = 2;
const SECONDS = 300;

const { values } = parseArgs({ options: { json: { type: 'string' }, help: { type: 'boolean' } } });
if (values.help) console.log(HELP);
else process.exitCode = await main();

async function main(): Promise<number> {
  const nccl = await fetchNccl();
  const library = path.join(nccl, 'lib');
  const program = await compileProgram('nccl', 'collectives', [
    ...['-gencode', 'arch=compute_80,code=compute_80'],
    ...['-I', path.join(nccl, 'include'), '-L', library, '-lnccl', '-Xlinker', `-rpath,${library}`],
  ]);
  const tally = new Tally();
  const { cases, problems } = await run(program);
  tally.judge(`collectives of NCCL, ${GPUS} processes`, problems);
  const counts = problems.length === 0 ? { passed: cases, failed: 0 } : { passed: 0, failed: 1 };
  const what = `collectives of ${GPUS} processes with a GPU each, also in CUDA graphs`;
  if (values.json)
    writeFileSync(values.json, resultFile([{ name: `NCCL ${VERSION}`, what, ...counts }]));
  return tally.close();
}

/** The package's directory. It is downloaded once. */
async function fetchNccl(): Promise<string> {
  const directory = path.join(cacheDirectory(), `nccl-${VERSION}`);
  const nccl = (tree: string) => path.join(tree, 'nvidia', 'nccl');
  if (!existsSync(directory)) {
    console.log(`Fetching NCCL (once) into ${directory}`);
    await fetchPythonPackages(directory, [`nvidia-nccl-cu13==${VERSION}`], (tree) =>
      symlinkSync('libnccl.so.2', path.join(nccl(tree), 'lib', 'libnccl.so')),
    );
  }
  return nccl(directory);
}

async function run(program: string): Promise<{ cases: number; problems: string[] }> {
  const { status, stdout, stderr } = await runChild(
    process.execPath,
    [GPU_PROXY, 'run', '--backend', 'simulated', '--', program, String(GPUS)],
    {
      cwd: tmpdir(),
      seconds: SECONDS,
      env: { ...process.env, ...ENVIRONMENT, NVIDIA_VIRTUAL_SIMULATED_GPUS: String(GPUS) },
    },
  );
  const [, cases, wrong] = /^(\d+) cases, (\d+) wrong$/m.exec(stdout) ?? [];
  const right = status === 0 && wrong === '0' && Number(cases) > 0;
  return {
    cases: Number(cases ?? 0),
    problems: right ? [] : [`it ended with ${status}\n${stdout}${stderr}`],
  };
}
