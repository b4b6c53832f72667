import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { REPOSITORY } from '../paths.js';
import type { Mode } from './modes.js';

const PAGE = path.join(REPOSITORY, 'docs', 'coverage.md');

interface TraceEvent {
  readonly cat?: string;
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

/** The calls that a traced program made with success. A program that ended early has a part. */
export function callsOf(traceFile: string): string[] {
  if (!existsSync(traceFile)) return [];
  const events = JSON.parse(readFileSync(traceFile, 'utf8')) as TraceEvent[];
  return events
    .filter(({ cat, args }) => cat === 'call' && args['return'] === 'CUDA_SUCCESS')
    .map(({ name }) => name);
}

interface SupportedCall {
  readonly name: string;
  /** GPUs that have what it is about: all, real ones, or real ones newer than the tests have. */
  readonly on: 'all' | 'real' | 'newer';
}

/** What the programs of one mode called. */
interface Coverage {
  readonly supported: number;
  /** Supported calls that no program made with success. */
  readonly notMade: readonly string[];
  /** Calls that only other GPUs support. */
  readonly elsewhere: readonly string[];
}

/** Calls that docs/coverage.md says work: every row but those of refused, missing and constant. */
export function supportedCalls(page: string): SupportedCall[] {
  return [...page.matchAll(/^\| (cu\w+)[^|]*\| ([^|]*) \|/gm)]
    .filter(([, , how = '']) => !/^(missing|refused|always)\b/.test(how))
    .map(([, name = '', how = '']) => ({ name, on: gpusOf(how) }));
}

function gpusOf(how: string): SupportedCall['on'] {
  if (how.endsWith('(real GPU only)')) return 'real';
  return how.includes('(real GPU of compute capability') ? 'newer' : 'all';
}

/** @param made the calls that programs made with success */
export function coverage(made: ReadonlySet<string>, mode: Mode, page = readPage()): Coverage {
  const all = supportedCalls(page);
  const supported = all.filter(({ on }) => on === 'all' || (on === 'real' && mode !== 'simulated'));
  return {
    supported: supported.length,
    notMade: supported.filter(({ name }) => !made.has(name)).map(({ name }) => name),
    elsewhere: all.filter((call) => !supported.includes(call)).map(({ name }) => name),
  };
}

function readPage(): string {
  return readFileSync(PAGE, 'utf8');
}
