import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { REPOSITORY } from '../paths.js';
import type { LocalResults } from './figures.js';

/** Output of test/bench/h200.py. */
export interface GpuResults {
  readonly machine: GpuMachine;
  readonly figures: readonly GpuFigure[];
  readonly errors: readonly string[];
}

export interface GpuMachine {
  readonly gpu: string;
  readonly driver: string;
  readonly cores: number;
  readonly date: string;
}

interface GpuFigure {
  readonly name: string;
  readonly unit: string;
  readonly native?: number;
  readonly remoted?: number;
  readonly ratio?: number;
  /** The least and the greatest ratio of one round. */
  readonly spread?: readonly [number, number];
  readonly limit?: string;
  readonly holds?: boolean;
}

/** Output of test/bench/frameworks.py. */
export interface FrameworkResults {
  readonly machine: GpuMachine;
  readonly frameworks: readonly Framework[];
}

export interface Framework {
  readonly name: string;
  /** Absent in results of earlier versions, whose programs are all timed. */
  readonly timed?: boolean;
  readonly subject?: string;
  /** The day of the run. */
  readonly date: string;
  readonly native: FrameworkRun;
  readonly remoted: FrameworkRun;
  readonly equal: boolean;
  /** Results that natively differ from run to run. */
  readonly varying?: readonly string[];
  readonly ratio?: number;
  /** The least and the greatest ratio of one turn. */
  readonly spread?: readonly [number, number];
  readonly limit?: string;
  readonly holds?: boolean;
  /** Processor time, worker included. */
  readonly processor_ratio?: number;
  readonly processor_spread?: readonly [number, number];
  readonly processor_limit?: string;
  readonly processor_holds?: boolean;
}

interface FrameworkRun {
  /** Median. */
  readonly seconds?: number;
  readonly processor?: number;
  readonly versions?: Readonly<Record<string, string>>;
  readonly error?: string;
}

/** Output of test/runtimes. */
export interface RuntimeResults {
  readonly date: string;
  readonly runtimes: readonly {
    readonly release: string;
    /** CUDA version of the driver. */
    readonly driver: string;
    /** The expected result of the first call, and the one that it gave. */
    readonly expected: string;
    readonly status: string;
    /** Whether the kernel computed right values. */
    readonly right?: boolean;
  }[];
}

/** Output of a runner of public programs on the simulated GPU. */
export interface SimulatedResults {
  readonly date: string;
  readonly programs: readonly {
    /** With its version. */
    readonly name: string;
    readonly what: string;
    readonly passed: number;
    readonly failedAsExpected?: number;
    readonly failed: number;
  }[];
}

/** Output of test/bench/sharing.py. Parts are relative to the native rate alone. */
export interface SharingResults {
  readonly machine: GpuMachine;
  readonly scenarios: readonly SharingScenario[];
}

export interface SharingScenario {
  readonly name: string;
  readonly date: string;
  readonly tenants: readonly SharingTenant[];
  readonly limit?: string;
  readonly holds?: boolean;
  /** Replaces the hardware's slicing. */
  readonly sliced_is?: string;
  /** Subject of the limit if it is not the sum of the parts. */
  readonly got?: readonly number[];
}

export interface SharingTenant {
  readonly mode: string;
  /** Microseconds. */
  readonly kernel: number | null;
  readonly alone: TenantFigures;
  readonly sliced: TenantFigures;
  readonly shared: TenantFigures;
}

export interface TenantFigures {
  readonly part?: number | null;
  /** Microseconds. */
  readonly p99?: number;
}

/** Output of test/bench/suspend.py. Times in seconds. */
interface SuspendResults {
  readonly machine: GpuMachine;
  readonly sizes: readonly {
    readonly gib: number;
    /** Words with a wrong value. */
    readonly wrong: number;
    readonly 'out, first': number;
    /** Median. */
    readonly out: number;
    readonly 'in, first': number;
    readonly in: number;
  }[];
  readonly frameworks: readonly DisturbedFramework[];
}

/** A program that is suspended or moved so many times in several runs. */
export interface DisturbedFramework {
  readonly name: string;
  readonly times: number;
  readonly runs: number;
  /** Its results are those of a run that is not disturbed. */
  readonly equal: boolean;
}

/** Output of test/bench/checkpoint.py. Medians of times in seconds, as a user waits. */
interface CheckpointResults {
  readonly machine: GpuMachine;
  readonly sizes: readonly {
    readonly gib: number;
    readonly wrong: number;
    readonly out: number;
    readonly in: number;
  }[];
  readonly frameworks: readonly DisturbedFramework[];
}

/** Output of test/bench/move.py. Times in seconds, as a user waits. */
interface MoveResults {
  readonly machine: GpuMachine;
  readonly sizes: readonly {
    readonly gib: number;
    readonly wrong: number;
    readonly 'first move': number;
    /** Median. */
    readonly move: number;
  }[];
  readonly frameworks: readonly DisturbedFramework[];
}

/** Output of test/bench/oversubscribe.py. Times in seconds. */
export interface OversubscribeResults {
  readonly machine: GpuMachine;
  readonly three?: {
    readonly gib: number;
    readonly 'first answer': number;
    readonly wrong: number;
  };
  readonly pair?: {
    readonly gib: number;
    readonly 'seconds of a turn': number;
    readonly 'ratio, strict turns': number;
    readonly 'ratio, always': number;
    readonly wrong: number;
  };
}

export interface Results {
  readonly local?: LocalResults;
  readonly gpu?: GpuResults;
  readonly frameworks?: FrameworkResults;
  readonly sharing?: SharingResults;
  readonly suspend?: SuspendResults;
  readonly checkpoint?: CheckpointResults;
  readonly move?: MoveResults;
  readonly oversubscribe?: OversubscribeResults;
  /** Output of test/bench/scheduling. */
  readonly scheduling?: LocalResults;
}

const DIRECTORY = path.join(REPOSITORY, 'test', 'bench', 'results');

/** The committed measurements, if they exist. */
export function committedResults(): Results {
  const local = read<LocalResults>('local.json');
  const gpu = read<GpuResults>('bench.json');
  const frameworks = read<FrameworkResults>('frameworks.json');
  const sharing = read<SharingResults>('sharing.json');
  const suspend = read<SuspendResults>('suspend.json');
  const checkpoint = read<CheckpointResults>('checkpoint.json');
  const move = read<MoveResults>('move.json');
  const oversubscribe = read<OversubscribeResults>('oversubscribe.json');
  const scheduling = read<LocalResults>('scheduling.json');
  const parts = {
    ...(local && { local }),
    ...(gpu && { gpu }),
    ...(frameworks && { frameworks }),
    ...(sharing && { sharing }),
    ...(suspend && { suspend }),
    ...(checkpoint && { checkpoint }),
    ...(move && { move }),
    ...(oversubscribe && { oversubscribe }),
  };
  return { ...parts, ...(scheduling && { scheduling }) };
}

/** The committed results of test/runtimes, if they exist. */
export function committedRuntimes(): RuntimeResults | undefined {
  return read<RuntimeResults>('runtimes.json');
}

/** The committed results of test/llama, test/nccl and test/suites, as far as they exist. */
export function committedSimulated(): SimulatedResults[] {
  const all = ['llama.json', 'nccl.json', 'suites.json'].map((name) =>
    read<SimulatedResults>(name),
  );
  return all.filter((one) => one !== undefined);
}

/** The text of such a file, with today's date. */
export function resultFile(programs: SimulatedResults['programs']): string {
  const date = new Date().toISOString().slice(0, 10);
  return `${JSON.stringify({ date, programs }, null, 2)}\n`;
}

function read<T>(name: string): T | undefined {
  const file = path.join(DIRECTORY, name);
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as T) : undefined;
}
