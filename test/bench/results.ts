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
  readonly limit?: string;
  readonly holds?: boolean;
}

export interface FrameworkResults {
  readonly machine: GpuMachine;
  readonly frameworks: readonly Framework[];
}

interface Framework {
  readonly name: string;
  readonly native: { readonly seconds?: number; readonly error?: string };
  readonly remoted: { readonly seconds?: number; readonly error?: string };
  readonly equal: boolean;
  readonly ratio?: number;
}

/** Output of test/bench/sharing.py. Parts are relative to the native rate alone. */
export interface SharingResults {
  readonly machine: GpuMachine;
  readonly scenarios: readonly SharingScenario[];
}

export interface SharingScenario {
  readonly name: string;
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

export interface Results {
  readonly local?: LocalResults;
  readonly gpu?: GpuResults;
  readonly frameworks?: FrameworkResults;
  readonly sharing?: SharingResults;
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
  const scheduling = read<LocalResults>('scheduling.json');
  const parts = {
    ...(local && { local }),
    ...(gpu && { gpu }),
    ...(frameworks && { frameworks }),
    ...(sharing && { sharing }),
  };
  return { ...parts, ...(scheduling && { scheduling }) };
}

function read<T>(name: string): T | undefined {
  const file = path.join(DIRECTORY, name);
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as T) : undefined;
}
