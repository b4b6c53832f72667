import type { LocalResults } from './figures.js';
import { table } from './markdown.js';
import { plots } from './plots.js';
import type {
  DisturbedFramework,
  Framework,
  FrameworkResults,
  GpuMachine,
  GpuResults,
  OversubscribeResults,
  Results,
  SharingResults,
  TenantFigures,
} from './results.js';

const HEAD = `# Performance

What a program loses through the product, and how several tenants share a GPU. The tables have all
figures. A *limit* is a bound that a figure must keep. [How it was measured](#how-it-was-measured)
has machines, dates and methods. test/dist/bench/report.js generates this page and its pictures from
test/bench/results/.`;

const SHARING_COLUMNS = `A tenant's part is its rate divided by its native rate alone. Brackets \
have the p99 of a piece of
its work in ms.

- *sliced*: natively, with the hardware's own time-slicing
- *shared*: through the product, each tenant in an allocation of its own`;

const GUARDS = `### The cost of the guards

The second check and the rule that markers wait for windows cost little. The table has the total of
two decoders and of four tenants with kernels of 50 us, two runs each in turns.

| build | two decoders | four of 50 us |
| --- | --- | --- |
| as it is | 0.961, 0.964 | 0.976, 0.981 |
| markers (events, waits, host functions) wait for no window | 0.951, 0.970 | 0.982, 0.978 |
| without the second check's readings, four a second | 0.970, 0.973 | 0.979, 0.982 |

On another machine of that day, the same build made 0.942 (two decoders), 0.938 (four decoders)
and 0.908 (four of 50 us). All other scenarios measured there kept their limits.

A program with \`fixed\` 5 % that only records events leaves its busy neighbour 0.945 of the rate \
that
it has alone. When markers did not wait for windows, it was 0.753.`;

const SUSPEND_COLUMNS = `The times are gpu-proxy's own, from the closed gate to the last byte. The
first time out includes making the arena. Limits: 8 GiB within 0.25 s each way, 100 GiB in within
2.5 s.`;

const METHOD = `To measure again, run the command and put its JSON into test/bench/results/.

### Calls, copies and frameworks

- Each figure is measured natively and through the product in one run, in turns. The median counts.
  Brackets have the least and the greatest ratio of one turn; before them is the median of those
  ratios.
- Processor time is that of the program and its worker together.
- Machines differ. On seven of 2026-11-28 and 2026-11-29, remoted / native was:

  | figure | least | median | greatest |
  | --- | --- | --- | --- |
  | 20,000 launches and the final synchronize | 0.86 | 1.05 | 1.20 |
  | launch and synchronize, before the change below | 0.94 | 1.00 | 1.10 |
  | 8 threads launching to 8 streams, before the worker spun | 0.83 | 0.96 | 1.02 |
  | pageable 4 KiB copy, host to device | 0.80 | 0.92 | 1.00 |
  | module load, find, unload, before the changes below | 0.89 | 1.30 | 1.62 |

- Launch and synchronize made 1.03, 1.03 and 1.04 on three more of 2026-11-29. Since then, the GPU
  [tells the client itself](decisions/2026-11-21-the-gpu-says-when-a-launch-is-done.md) that the
  wait has ended. In builds that ran in turns on another machine, that made 0.981 (0.861 to 1.159)
  instead of 1.030 (0.932 to 1.154).
- A launch with a wait for the device was measured before \`cuCtxSynchronize\` waited for the
  default stream where that has all the work.
- ResNet-50 and GPT-2 have one process through the product and two native ones. They do the timed
  work in turns, and each ratio is to the native turns before and behind it.
- GPT-2 made 0.81 and 0.89 on two other machines of 2026-11-30: its limit does not hold on every
  machine. It spends most of its time in Python. Natively, 9.5 % of the samples of its main thread
  were in the driver. Through the product, 2.5 % were in libcuda.so.1.
- With 8 threads, the worker [spins at the driver's
  mutex](decisions/2026-11-29-spin-at-the-drivers-mutex.md). In builds that ran in turns, that made
  1.207 instead of 1.005 on one machine, and 1.115 (1.081 to 1.253) instead of 0.964 (0.944 to
  1.045) on another. The program and its worker took 1.14 times the native processor time instead of
  1.20.
- Their processors are virtual. On the first one, a processor was 1.45 times slower for seconds,
  also natively. A program and its worker need two fast ones at once.
- A module of 37 KB takes 53 us on fast ones and 75 to 80 us on slow ones; through the product, 61
  us and 84 us. It was 68 us and 96 us (medians of 8 runs in turns). The driver takes as long in the
  worker. The program [does not wait for the
  unloading](decisions/2026-11-29-unloading-is-not-waited-for.md), and the worker checks the image
  where it lies. What remains: 2 to 4 us to fetch the image from the program's processor, 4 us to
  check it, 2 us for two round trips. To send it in parts gained nothing.
- A query of an event whose work is under way asks the worker. Where the work is done, the answer
  comes from shared memory, and the limit is for that.
- A pageable copy is measured with a synchronize behind it, because it returns when the driver has
  taken the data. For 4 KiB that is the latency of both, and misses its limit: a second process on
  the way leaves nothing to gain. Two threads that make nothing but the driver's calls for each
  other take 7.7 to 8.1 us, a native program 7.6 (medians on one H200 of 2026-11-29).
- The results of a framework program are equal if all digests that repeat natively are equal.
  [Compatibility](compatibility.md) has the programs that are not timed.

### Several tenants

- Each scenario is one run. Those of one date ran on one machine within a quarter of an hour,
  except the gangs, which ran on a machine with two GPUs. The runs of the guards are of 2026-11-23.
- The first call is the time from main to the end of the first kernel: 135 ms natively, 24 ms with
  a warm worker, and 192 ms without one. With \`gpu-proxy run\`, it was 276 ms on another machine,
  instead of 194 ms, because gpu-proxy reads NVML for the first time meanwhile.
- Machines of one kind differ. On three of 2026-11-27, four of 50 us made 0.970 to 0.979. On one of
  them, while its host took away 390 ms of processor time a second, they made 0.874.
- On another machine of 2026-11-29, two decoders made 0.948 to 0.960 with a p99 of 2.40 to 2.44 ms,
  and four 0.923 to 0.938 with 4.6 to 4.7 ms. Before the
  [last change](decisions/2026-11-24-windows-end-at-a-pause.md#measured-later), they made 0.929 and
  0.908 there.
- Windows are 5 ms, or longer if all tenants pause seldom: 15 ms for two of 50 %, 7.5 ms for four of
  25 %. They are shorter, and end at a pause, if all pause often.
- The GPU stands still for 0.14 ms at each handover, which is 2.8 % of 5 ms.
- A scenario is repeated if the machine's host took away more than 15 ms of processor time a second.
  Exceptions are the trainings in turns and the first call. On a host that took away 100 ms a
  second, two and four tenants with kernels of 50 us made 0.90 to 0.96.
- The host's processor limits a ResNet-50 training alone: 40 to 52 steps a second from machine to
  machine, and 51.8 on this one.

### Memory that leaves

- A program checks and changes each word after each return. Medians of five cycles.
- Programs of frameworks/ run again and again in one process, suspended every 0.1 s until 20
  suspensions. Each run's results are compared with those of a run without. They ran on another
  machine of that day than the sizes.
- Programs were in a file three times each. The two frameworks ran on another machine of that day
  than the sizes. Beside the program's memory, a file has 0.6 GiB of the driver's.
- On the oversubscribed GPU, the policy alone moves memory: nobody suspends anything.

### Scheduling

- 5,000 nodes of 8 GPUs with 10 slots each and 20,000 running pods. A real API server and
  kube-scheduler run on the same processors.
- A request is timed from its first byte to the last byte of its answer. It has the names of all
  candidate nodes, in another order each time, as after kube-scheduler's own filters.
- One pod in four fits nowhere, and gets a reason for each node.
- The rate of bindings is that of 1,000 pods which are pending when kube-scheduler starts. Both are
  of the same cluster with the same settings, except for the extender. Without it, kube-scheduler
  sends the bindings itself, at 50 requests a second by its own limit.`;

/** Generates docs/performance.md. */
export function renderPage(results: Results): string {
  const sections = [
    HEAD,
    summary(results),
    gpuSection(results.gpu),
    frameworkSection(results.frameworks),
    sharingSection(results.sharing),
    memorySection(results),
    localSection(results.local),
    schedulingSection(results.scheduling),
    methodSection(results),
  ];
  return `${sections.join('\n\n')}\n`;
}

/** Charts first. Title and axis explain a chart. */
function summary(results: Results): string {
  const pictures = plots(results).map(({ file, title }) => `![${title}](${file})`);
  return ['## Summary', ...pictures].join('\n\n');
}

function methodSection(results: Results): string {
  const { gpu, frameworks, sharing, suspend, move, checkpoint } = results;
  const { oversubscribe, local, scheduling } = results;
  const runs = [
    ['calls and copies', 'test/h200.sh bench', gpu?.machine],
    ['frameworks', 'test/h200.sh frameworks', frameworks?.machine],
    ['several tenants', 'test/h200.sh sharing', sharing?.machine],
    ['suspended memory', 'test/h200.sh suspend', suspend?.machine],
    ['moves', 'test/h200.sh move', move?.machine],
    ['files', 'test/h200.sh checkpoint', checkpoint?.machine],
    ['oversubscription', 'test/h200.sh oversubscribe', oversubscribe?.machine],
    ['without a GPU', 'npm run bench', local?.machine],
    ['scheduling', 'node test/dist/bench/scheduling/main.js', scheduling?.machine],
  ] as const;
  const rows = runs.flatMap(([what, command, machine]) =>
    machine === undefined
      ? []
      : [[what, machine.date, hardware(machine), `${machine.cores}`, `\`${command}\``]],
  );
  const head = ['figures', 'date', 'machine', 'processors', 'command'];
  return `## How it was measured\n\n${table(head, rows)}\n\n${METHOD}`;
}

function hardware(machine: GpuMachine | LocalResults['machine']): string {
  return 'gpu' in machine ? `${machine.gpu}, driver ${machine.driver}` : machine.processor;
}

function localSection(results: LocalResults | undefined): string {
  const title = '## Without a GPU';
  if (!results) return `${title}\n\nNot measured yet.`;
  const rows = results.figures.map(({ name, value, unit, reference, ratio, limit, holds }) => [
    LOCAL_NAMES[name] ?? name,
    `${number(value)} ${unit}`,
    ratio === undefined || reference === undefined
      ? ''
      : `${ratio.toFixed(2)} x ${LOCAL_NAMES[reference] ?? reference}`,
    verdict(limit, holds),
  ]);
  return `${title}\n\n${table(['figure', 'measured', 'compared', 'limit'], rows)}`;
}

const LOCAL_NAMES: Readonly<Record<string, string>> = {
  'ring.bare.enqueue_128': 'bare ring: 128 bytes enqueued',
  'ring.wire.enqueue_128': "the product's ring: 128 bytes enqueued",
  enqueue: 'cuEventRecord through the whole product (simulated GPU)',
  'ring.bare.null_round_trip': 'bare ring: null round trip',
  'ring.wire.null_round_trip': "the product's ring: null round trip",
  'round trip': 'a call with a reply through the whole product (simulated GPU)',
  'thread instructions a second and core':
    'simulator: thread instructions per second and core, float arithmetic',
};

function gpuSection(results: GpuResults | undefined): string {
  const title = '## Calls and copies';
  if (!results) return `${title}\n\nNot measured yet.`;
  const rows = results.figures.map(
    ({ name, unit, native, remoted, ratio, spread, limit, holds }) => [
      name,
      native === undefined ? 'failed' : `${number(native)} ${unit}`,
      remoted === undefined ? 'failed' : `${number(remoted)} ${unit}`,
      ratioWithSpread(ratio, spread),
      verdict(limit, holds),
    ],
  );
  const errors =
    results.errors.length > 0
      ? `\n\nWhat failed: ${results.errors.map((error) => error.split('\n')[0]).join('; ')}.`
      : '';
  const columns = ['figure', 'native', 'remoted', 'remoted / native', 'limit'];
  return `${title}\n\n${table(columns, rows)}${errors}`;
}

function frameworkSection(results: FrameworkResults | undefined): string {
  const title = '## Frameworks';
  if (!results) return `${title}\n\nNot measured yet.`;
  const rows = results.frameworks.filter(({ timed }) => timed !== false).flatMap(frameworkRows);
  const columns = ['program', 'native', 'remoted', 'remoted / native', 'equal', 'limit', 'date'];
  return `${title}\n\n${table(columns, rows)}`;
}

function frameworkRows(one: Framework): string[][] {
  const time = (seconds: number | undefined) =>
    seconds === undefined ? 'failed' : `${number(seconds)} s`;
  const { native, remoted } = one;
  const row = [
    one.name,
    time(native.seconds),
    time(remoted.seconds),
    ratioWithSpread(one.ratio, one.spread),
    one.equal ? 'yes' : 'NO',
    verdict(one.limit, one.holds),
    one.date,
  ];
  if (one.processor_ratio === undefined) return [row];
  const processor = [
    `${one.name}, processor time`,
    time(native.processor),
    time(remoted.processor),
    ratioWithSpread(one.processor_ratio, one.processor_spread),
    '',
    verdict(one.processor_limit, one.processor_holds),
    one.date,
  ];
  return [row, processor];
}

function ratioWithSpread(ratio?: number, spread?: readonly [number, number]): string {
  if (ratio === undefined) return '';
  const range = spread ? ` (${spread[0].toFixed(3)} to ${spread[1].toFixed(3)})` : '';
  return `${ratio.toFixed(3)}${range}`;
}

function sharingSection(results: SharingResults | undefined): string {
  const title = '## Several tenants on one GPU';
  if (!results) return `${title}\n\nNot measured yet.`;
  const rows = results.scenarios.map(
    ({ name, date, tenants, limit, holds, got, sliced_is: slicedIs }) => {
      const parts = (where: 'sliced' | 'shared') =>
        tenants.map((tenant) => part(tenant[where])).join(' + ');
      const figures = got
        ? ` (${got.map((value) => Number(value.toPrecision(3))).join(', ')})`
        : '';
      const sliced = slicedIs === undefined ? parts('sliced') : `${slicedIs}: ${parts('sliced')}`;
      return [
        name,
        sliced,
        parts('shared'),
        limit === undefined ? '' : `${verdict(limit, holds)}${figures}`,
        date,
      ];
    },
  );
  return (
    `${title}\n\n${SHARING_COLUMNS}\n\n` +
    `${table(['tenants', 'sliced', 'shared', 'limit', 'date'], rows)}\n\n${GUARDS}`
  );
}

function memorySection({ suspend, move, checkpoint, oversubscribe }: Results): string {
  const sections = ['## Memory that leaves'];
  if (suspend !== undefined) {
    const sizes = sizeRows(suspend.sizes, ['out, first', 'out', 'in']);
    sections.push(
      SUSPEND_COLUMNS,
      table(['memory', 'out, first time', 'out', 'in', 'wrong words'], sizes),
      disturbed('suspensions', suspend.frameworks),
    );
  }
  if (move !== undefined) {
    const sizes = sizeRows(move.sizes, ['first move', 'move']);
    sections.push(
      'Moves between two GPUs, with the time of the command `gpu-proxy move`:',
      table(['memory', 'first move', 'move', 'wrong words'], sizes),
      disturbed('moves', move.frameworks),
    );
  }
  if (checkpoint !== undefined) {
    const sizes = sizeRows(checkpoint.sizes, ['out', 'in']);
    sections.push(
      'To an encrypted file and back, with the times of `gpu-proxy checkpoint` and `restore`:',
      table(['memory', 'checkpoint', 'restore', 'wrong words'], sizes),
      disturbed('times in a file', checkpoint.frameworks),
    );
  }
  if (oversubscribe !== undefined) {
    sections.push(table(['oversubscribed GPU', 'measured', 'limit'], exchanges(oversubscribe)));
  }
  if (sections.length === 1) sections.push('Not measured yet.');
  return sections.join('\n\n');
}

/** Rows with the size of the memory, times in seconds, and the number of wrong words. */
function sizeRows<Time extends string>(
  sizes: readonly ({ readonly gib: number; readonly wrong: number } & Readonly<
    Record<Time, number>
  >)[],
  times: readonly Time[],
): string[][] {
  return sizes.map((one) => [
    `${one.gib} GiB`,
    ...times.map((time) => `${number(one[time])} s`),
    `${one.wrong}`,
  ]);
}

function disturbed(times: string, frameworks: readonly DisturbedFramework[]): string {
  const rows = frameworks.map((one) => [one.name, `${one.times}`, one.equal ? 'yes' : 'NO']);
  return table(['program', times, 'results as without'], rows);
}

function exchanges({ three, pair }: OversubscribeResults): string[][] {
  const rows: string[][] = [];
  if (three !== undefined) {
    const seconds = three['first answer'];
    rows.push([
      `first answer of an idle program, ${three.gib} GiB, while another idle one leaves`,
      `${number(seconds)} s`,
      verdict('<= 0.5 s', seconds <= 0.5),
    ]);
  }
  if (pair !== undefined) {
    const what = `two of ${pair.gib} GiB against one after the other`;
    const length = Math.round(pair['seconds of a turn']);
    const row = (how: string, ratio: number) => [
      `${what}, ${how}`,
      number(ratio),
      verdict('>= 0.9', ratio >= 0.9),
    ];
    rows.push(
      row(`each computes ${length} s in turns`, pair['ratio, strict turns']),
      row('both always compute', pair['ratio, always']),
    );
  }
  return rows;
}

function schedulingSection(results: LocalResults | undefined): string {
  const title = '## Scheduling';
  if (!results) return `${title}\n\nNot measured yet.`;
  const rows = results.figures.map(({ name, value, unit, limit, holds }) => [
    name,
    `${number(value)} ${unit}`.trim(),
    verdict(limit, holds),
  ]);
  return `${title}\n\n${table(['figure', 'measured', 'limit'], rows)}`;
}

function part({ part, p99 }: TenantFigures): string {
  const share = typeof part === 'number' ? part.toFixed(3) : 'failed';
  return p99 === undefined ? share : `${share} (${number(p99 / 1000)})`;
}

function verdict(limit: string | undefined, holds: boolean | undefined): string {
  return limit === undefined ? '' : `${limit}: ${holds ? 'holds' : 'DOES NOT HOLD'}`;
}

function number(value: number): string {
  return value >= 1000 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
}
