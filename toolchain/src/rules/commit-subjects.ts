import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { REPOSITORY } from '../repository.js';
import type { Rule } from './rule.js';

const run = promisify(execFile);

/** The last commit before this rule. */
const BASE = '2ba512c2a92f27841f1907fb3404033ca0d3818d';
const LONGEST = 72;

export const commitSubjects: Rule = {
  law: `commit subjects are "area: what it does", at most ${LONGEST} characters`,
  check: async () => (await newSubjects()).flatMap(findWrongSubject),
};

export function findWrongSubject(subject: string): string[] {
  if (subject.startsWith('Merge ')) return [];
  if (subject.length > LONGEST) return [`"${subject}" has ${subject.length} characters.`];
  return /^[\w.,/ -]+: \S/.test(subject)
    ? []
    : [`"${subject}" does not begin with an area and a colon.`];
}

/** Empty in a copy of the tree without history. */
async function newSubjects(): Promise<string[]> {
  try {
    const { stdout } = await run('git', ['log', '--format=%s', `${BASE}..HEAD`], {
      cwd: REPOSITORY,
    });
    return stdout.split('\n').filter((line) => line !== '');
  } catch {
    return [];
  }
}
