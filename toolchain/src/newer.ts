import { statSync } from 'node:fs';

/** Whether `output` exists and is newer than all inputs. */
export function isCurrent(output: string, inputs: readonly string[]): boolean {
  const made = timeOf(output);
  return (
    made !== undefined &&
    inputs.every((input) => (timeOf(input) ?? Number.POSITIVE_INFINITY) <= made)
  );
}

function timeOf(file: string): number | undefined {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs;
}
