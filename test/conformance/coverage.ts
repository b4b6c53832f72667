import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { REPOSITORY } from '../paths.js';
import type { Mode } from './modes.js';

const PAGE = path.join(REPOSITORY, 'docs', 'coverage.md');
const SIMULATOR = path.join(REPOSITORY, 'build/release/native/simulator/libsimulator-cuda.so.1');

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
    .filter(({ cat, args }) => cat === 'call' && args['result'] === 'CUDA_SUCCESS')
    .map(({ name }) => name);
}

/** A supported call. `travels`: the driver executes it, not the program's library. */
interface SupportedCall {
  readonly name: string;
  readonly travels: boolean;
}

/** Calls that docs/coverage.md says work: every row but those of refused, missing and constant. */
export function supportedCalls(page: string): SupportedCall[] {
  return [...page.matchAll(/^\| (cu\w+)[^|]*\| ([^|]*) \|/gm)]
    .filter(([, , how = '']) => !/^(missing|refused|always)\b/.test(how))
    .map(([, name = '', how = '']) => ({ name, travels: /^(answered by|sent)/.test(how) }));
}

/** The supported calls that are not among `made`, on the real or the simulated GPU. */
export function notMade(made: ReadonlySet<string>, mode: Mode): string[] {
  const lacking = mode === 'simulated' ? lackingInSimulator() : new Set();
  return supportedCalls(readFileSync(PAGE, 'utf8'))
    .filter(({ name, travels }) => !made.has(name) && !(travels && lacking.has(name)))
    .map(({ name }) => name);
}

/** Functions that the simulated driver lacks are generated, as weak symbols. */
function lackingInSimulator(): Set<string> {
  const symbols = execFileSync('nm', ['-D', '--defined-only', SIMULATOR], { encoding: 'utf8' });
  return new Set([...symbols.matchAll(/ W (\w+)/g)].map(([, name = '']) => name));
}
