import type { FrameworkProgram } from './framework-programs.js';
import { table } from './markdown.js';
import type { Framework, FrameworkResults, RuntimeResults, SimulatedResults } from './results.js';

const HEAD = `# Compatibility

Programs, CUDA releases, and what was run with them. test/dist/bench/report.js generates this page
from test/bench/results/.

## Frameworks

Each program runs natively, through the product, and natively again on one machine. A program is
*equal* if all digests of its results that repeat natively are the same through the product.
[Performance](performance.md) has the times. A program that is *not measured* was written without a
machine with a GPU.`;

const RUNTIMES = `## CUDA runtimes

A program loads the shared libcudart of a release. It registers a kernel in PTX, allocates, copies,
launches and copies back, on the simulated GPU.`;

const SIMULATED = `## Public programs on the simulated GPU

The simulated GPU runs only PTX. Tests of machine code, as in cuBLAS, fail there as expected. Tests
that their authors skip are not counted.`;

const LIMITS = `## Known limits

- The node's driver must support CUDA 12.4 (driver 550) or later.
- A runtime of a newer major version than the driver's fails with \`cudaErrorInsufficientDriver\`,
  as natively. Our libcuda.so.1 presents drivers after CUDA 13.0 as 13.0.
- vLLM was not run. Programs in test/bench/frameworks exercise its parts: graphs of a decoder, the
  reduction between processes, sleep mode, and how it finds its platform.
- DistributedDataParallel was recorded on a machine with one GPU.
- With \`NCCL_DEBUG=WARN\`, NCCL 2.28 says once \`cudawrap.cc: Cuda failure 1 'invalid argument'\`:
  it tries host memory of \`cuMemCreate\`, which is not offered, and then does without.
  \`NCCL_CUMEM_HOST_ENABLE=0\` avoids the attempt.
- CUPTI is out of scope: \`torch.profiler\` sees host activities and the times of events, but no
  device activities.`;

export interface Compatibility {
  readonly programs?: readonly FrameworkProgram[];
  readonly frameworks?: FrameworkResults | undefined;
  readonly runtimes?: RuntimeResults | undefined;
  readonly simulated?: readonly SimulatedResults[];
}

/** Generates docs/compatibility.md. */
export function renderCompatibility({
  programs = [],
  frameworks,
  runtimes,
  simulated = [],
}: Compatibility): string {
  const sections = [
    ...[HEAD, frameworkSection(programs, frameworks)],
    ...[SIMULATED, simulatedSection(simulated)],
    ...[RUNTIMES, runtimeSection(runtimes), LIMITS],
  ];
  return `${sections.join('\n\n')}\n`;
}

function frameworkSection(
  programs: readonly FrameworkProgram[],
  results: FrameworkResults | undefined,
): string {
  const measured = results?.frameworks ?? [];
  const subjects = new Map(programs.map(({ name, subject }) => [name, subject]));
  const rows = measured.map((one) => [
    one.subject ?? subjects.get(one.name) ?? one.name,
    versionsOf(one),
    resultOf(one),
    one.date,
  ]);
  const missing = programs.filter(({ name }) => !measured.some((one) => one.name === name));
  rows.push(...missing.map(({ subject }) => [subject, '', 'not measured', '']));
  const all = table(['program', 'versions', 'result', 'run on'], rows);
  if (!results) return `${all}\n\nNot run yet.`;
  const { gpu, driver } = results.machine;
  return `${all}\n\nRun on an ${gpu} with driver ${driver}.`;
}

function simulatedSection(results: readonly SimulatedResults[]): string {
  const rows = results.flatMap(({ date, programs }) =>
    programs.map(({ name, what, passed, failedAsExpected = 0, failed }) => [
      name,
      what,
      [
        `${passed} passed`,
        ...(failedAsExpected > 0 ? [`${failedAsExpected} failed as expected`] : []),
        ...(failed > 0 ? [`${failed} FAILED`] : []),
      ].join(', '),
      date,
    ]),
  );
  return rows.length === 0 ? 'Not run yet.' : table(['program', 'what', 'result', 'run on'], rows);
}

function versionsOf({ native }: Framework): string {
  return Object.entries(native.versions ?? {})
    .map(([name, version]) => `${name} ${version}`)
    .join(', ');
}

function resultOf({ native, remoted, equal, varying = [] }: Framework): string {
  if (native.error !== undefined) return 'fails natively';
  if (remoted.error !== undefined) return 'FAILS';
  if (!equal) return 'DIFFERENT';
  return varying.length === 0 ? 'equal' : `equal; ${varying.join(', ')} does not repeat natively`;
}

function runtimeSection(results: RuntimeResults | undefined): string {
  if (!results) return 'Not run yet.';
  const rows = results.runtimes.map(({ release, driver, expected, status, right }) => {
    const works = status === 'cudaSuccess' && right === true;
    const asExpected = status === expected && works === (expected === 'cudaSuccess');
    const result = works ? 'works' : `\`${status}\``;
    return [release, driver, asExpected ? result : `${result}, expected \`${expected}\``];
  });
  const head = ['CUDA runtime', "the driver's CUDA version", 'result'];
  return `${table(head, rows)}\n\nRun on ${results.date} by \`node test/dist/runtimes/main.js\`.`;
}
