import { printable } from '@nvidia-virtual/service/printable';
import type { Painter } from '../view/table.js';
import type { Diagnosis } from './findings.js';

/** A line for each subject, and below it a line for each problem. */
export function diagnosisLines(diagnoses: readonly Diagnosis[], paint: Painter): string[] {
  return diagnoses.flatMap(({ subject, facts, problems }) => {
    const verdict = problems.length === 0 ? paint('ok     ', 'good') : paint('PROBLEM', 'bad');
    return [
      `${verdict}   ${subject}: ${printable(facts)}`,
      ...problems.map((problem) => `          - ${printable(problem)}`),
    ];
  });
}
