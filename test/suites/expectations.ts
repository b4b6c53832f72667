import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { REPOSITORY } from '../paths.js';

/** Tests that cannot succeed on the simulated GPU, or that a known bug makes fail. */
export interface Expectation {
  /** How the names of the tests begin: FILE::CLASS::TEST. Without it, any test of the suite. */
  readonly tests?: string;
  /** Part of the error message. Without it, any message. */
  readonly message?: string;
  readonly why: string;
  /** Not even started, because they would make others fail, or take minutes. */
  readonly leftOut?: boolean;
}

/** @throws Error if an entry names neither tests nor a message */
export function expectations(suite: string): Expectation[] {
  const file = path.join(REPOSITORY, 'test', 'suites', 'expected', `${suite}.json`);
  if (!existsSync(file)) return [];
  const entries = JSON.parse(readFileSync(file, 'utf8')) as Expectation[];
  const vague = entries.find(({ tests, message }) => tests === undefined && message === undefined);
  if (vague) throw new Error(`${file}: "${vague.why}" requires \`tests\` or \`message\``);
  return entries;
}
