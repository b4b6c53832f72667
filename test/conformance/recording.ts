import type { Outcome } from '../child.js';

/** The output of a program on a real GPU, written by test/conformance/record.py. */
export interface Recording {
  readonly program: string;
  readonly hash: string;
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

export class RecordingError extends Error {}

export function parseRecording(data: Buffer): Recording {
  const reader = new Reader(data);
  const program = reader.field('program');
  const hash = reader.field('hash');
  for (const name of ['gpu', 'driver', 'date']) reader.field(name);
  const status = Number(reader.field('exit'));
  return {
    program,
    hash,
    status,
    stdout: reader.section('stdout'),
    stderr: reader.section('stderr'),
  };
}

/** Parses the lines `name: value`, and the sections whose length in bytes is such a line. */
class Reader {
  private position = 0;

  constructor(private readonly data: Buffer) {}

  field(name: string): string {
    const end = this.data.indexOf('\n', this.position);
    const line = this.data.toString('utf8', this.position, Math.max(end, this.position));
    if (end < 0 || !line.startsWith(`${name}: `))
      throw new RecordingError(`the line "${name}: ..." is missing; there is "${line}"`);
    this.position = end + 1;
    return line.slice(name.length + 2);
  }

  section(name: string): string {
    const size = Number(/^(\d+) bytes$/.exec(this.field(name))?.[1] ?? Number.NaN);
    const end = this.position + size;
    if (!(end < this.data.length)) throw new RecordingError(`the section "${name}" is cut off`);
    const text = this.data.toString('utf8', this.position, end);
    this.position = end + 1;
    return text;
  }
}

/**
 * Sorts each run of lines with the prefix, because CUDA leaves their order open. The same as
 * sort_unordered in record.py.
 */
export function sortUnordered(text: string, prefix: string | null): string {
  if (!prefix) return text;
  const lines = text.split('\n');
  for (let start = 0; start < lines.length; ) {
    let end = start;
    while (end < lines.length && lines[end]?.startsWith(prefix)) ++end;
    lines.splice(start, end - start, ...lines.slice(start, end).sort());
    start = Math.max(end, start + 1);
  }
  return lines.join('\n');
}

/**
 * Undefined if the outcome equals the recording; else a message with the first line that differs.
 */
export function difference(recording: Recording, outcome: Outcome): string | undefined {
  if (outcome.timedOut) return 'it did not end in time';
  return (
    firstLine('standard output', recording.stdout, outcome.stdout) ??
    firstLine('standard error', recording.stderr, outcome.stderr) ??
    (recording.status === outcome.status
      ? undefined
      : `exit status ${outcome.status} instead of ${recording.status}`)
  );
}

/** For a program that checks its own result and was not recorded: undefined if it succeeded. */
export function ownJudgement(outcome: Outcome): string | undefined {
  if (outcome.timedOut) return 'it did not end in time';
  return outcome.status === 0
    ? undefined
    : `exit status ${outcome.status}: ${outcome.stdout}${outcome.stderr}`;
}

function firstLine(what: string, expected: string, found: string): string | undefined {
  if (expected === found) return undefined;
  const wanted = expected.split('\n');
  const got = found.split('\n');
  const at = wanted.findIndex((line, i) => line !== got[i]);
  const line = at < 0 ? wanted.length : at;
  return (
    `${what}, line ${line + 1}: "${got[line] ?? '(end)'}" instead of ` +
    `"${wanted[line] ?? '(end)'}"`
  );
}
