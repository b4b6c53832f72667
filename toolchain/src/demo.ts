import { readdirSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { cmakeBuild } from './cmake.js';
import { runCommand, runVisibly } from './command.js';
import { type CudaCompiler, cudaCompiler } from './cuda-compiler.js';
import { runMain, ToolchainError } from './errors.js';
import { ORDINARY_PARTS, PORTABLE_PARTS } from './native-parts.js';
import { isCurrent } from './newer.js';
import { ensurePrerequisites } from './prerequisites.js';
import { showProgress } from './progress.js';
import { buildDirectory, GPU_PROXY, REPOSITORY } from './repository.js';
import { showTwoTenants } from './two-tenants.js';

const SOURCES = path.join(REPOSITORY, 'demo');
const PROGRAMS = buildDirectory('demo');
/** The program that two tenants run at the same time. */
const BUSY = '5-busy-for-seconds';
const QUOTA = '512MiB';

/**
 * `npm run demo`: compiles CUDA programs as a user would, runs them on a part of a GPU, and then
 * two at the same time on one GPU.
 */
await runMain(async () => {
  heading('Building');
  await ensurePrerequisites();
  const compiler = await cudaCompiler((line) => console.log(line));
  const targets = Object.keys({ ...PORTABLE_PARTS, ...ORDINARY_PARTS });
  const progress = showProgress('Native parts');
  await cmakeBuild({ preset: 'release', targets }, progress);
  progress.finish();

  heading('Compiling the demo programs with nvcc, as any user would');
  const programs = await compileAll(compiler);
  const failed: string[] = [];
  for (const program of programs) {
    const shown =
      path.basename(program) === BUSY
        ? showTwoTenants(path.relative(REPOSITORY, program), heading)
        : show(program);
    if (!(await shown)) failed.push(path.basename(program));
  }
  heading(
    failed.length === 0 ? `All ${programs.length} programs ran` : `Failed: ${failed.join(', ')}`,
  );
  console.log(`Try your own: npx gpu-proxy run --memory ${QUOTA} --verbose -- ./your-program`);
  return failed.length === 0 ? 0 : 1;
});

function heading(text: string): void {
  console.log(`\n=== ${text}`);
}

async function compileAll(compiler: CudaCompiler): Promise<string[]> {
  await mkdir(PROGRAMS, { recursive: true });
  const sources = readdirSync(SOURCES).filter((name) => name.endsWith('.cu'));
  return Promise.all(sources.sort().map((source) => compile(compiler, source)));
}

/** Static cudart, which is nvcc's default. */
async function compile(compiler: CudaCompiler, source: string): Promise<string> {
  const input = path.join(SOURCES, source);
  const program = path.join(PROGRAMS, path.basename(source, '.cu'));
  const line =
    `nvcc -O2 -o ${path.relative(REPOSITORY, program)} ` + `${path.relative(REPOSITORY, input)}`;
  if (isCurrent(program, [input, compiler.nvcc])) {
    console.log(`${line}   (unchanged)`);
    return program;
  }
  const { status, output } = await runCommand(compiler.nvcc, ['-O2', '-o', program, input]);
  if (status !== 0) throw new ToolchainError(`\`${line}\` failed:\n${output}`);
  console.log(line);
  return program;
}

async function show(program: string): Promise<boolean> {
  const name = path.relative(REPOSITORY, program);
  heading(`npx gpu-proxy run --memory ${QUOTA} --verbose -- ${name}`);
  const status = await runVisibly(process.execPath, [
    GPU_PROXY,
    'run',
    '--memory',
    QUOTA,
    '--verbose',
    '--',
    name,
  ]);
  if (status !== 0) console.log(`${name} ended with status ${status}`);
  return status === 0;
}
