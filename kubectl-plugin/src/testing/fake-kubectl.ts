import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Kubectl } from '../kubectl.js';

/** Output of one call. With an error it exits with 1. */
export interface Answer {
  readonly output?: string;
  readonly warning?: string;
  readonly error?: string;
}

const SCRIPT = `#!/bin/sh
cd "$(dirname "$0")" || exit
printf '%s\\t' "$@" >>calls
echo >>calls
number=$(wc -l <calls)
[ -e "$number.status" ] || number=last
cat "$number.warning" "$number.error" >&2
cat "$number.output"
exit "$(cat "$number.status")"
`;

/** A fake kubectl that prints prepared answers in order and repeats the last one. */
export class FakeKubectl {
  readonly directory = mkdtempSync(path.join(tmpdir(), 'fake-kubectl-'));
  /** Messages of the plugin to the user. */
  said = '';

  constructor(...answers: readonly Answer[]) {
    writeFileSync(this.#file('kubectl'), SCRIPT);
    chmodSync(this.#file('kubectl'), 0o755);
    for (const [index, answer] of answers.entries()) this.#write(String(index + 1), answer);
    this.#write('last', answers.at(-1) ?? {});
  }

  /** A client of this kubectl. */
  client(connection: readonly string[] = []): Kubectl {
    return new Kubectl({
      connection,
      environment: { ...process.env, PATH: `${this.directory}:${process.env['PATH']}` },
      requestTimeout: '5s',
      say: (text) => (this.said += text),
    });
  }

  /** Arguments of each call. */
  get calls(): string[][] {
    if (!existsSync(this.#file('calls'))) return [];
    const lines = readFileSync(this.#file('calls'), 'utf8').slice(0, -1).split('\n');
    return lines.map((line) => line.split('\t').slice(0, -1));
  }

  remove(): void {
    rmSync(this.directory, { recursive: true });
  }

  #write(call: string, { output = '', warning = '', error = '' }: Answer): void {
    const files = { output, warning, error, status: error === '' ? '0' : '1' };
    for (const [name, text] of Object.entries(files))
      writeFileSync(this.#file(`${call}.${name}`), text);
  }

  #file(name: string): string {
    return path.join(this.directory, name);
  }
}
