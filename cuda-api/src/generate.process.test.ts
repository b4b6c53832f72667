import { spawnSync } from 'node:child_process';
import { appendFileSync, cpSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const GENERATE = fileURLToPath(new URL('generate.js', import.meta.url));
const GOLDEN = fileURLToPath(new URL('../golden/', import.meta.url));

let directory = '';
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'cuda-api-'));
  cpSync(join(GOLDEN, 'specification'), directory, { recursive: true });
});
afterEach(() => rmSync(directory, { recursive: true }));

function generate(...args: string[]): { status: number | null; stderr: string } {
  return spawnSync(process.execPath, [GENERATE, '--specification', '.', ...args], {
    cwd: directory,
    encoding: 'utf8',
  });
}

test('does not write a file again that did not change', () => {
  const times = (): Record<string, number> =>
    Object.fromEntries(
      readdirSync(join(directory, 'out')).map((name) => [
        name,
        statSync(join(directory, 'out', name)).mtimeMs,
      ]),
    );
  expect(generate('--out', 'out').status).toBe(0);
  const before = times();
  appendFileSync(join(directory, 'calls/toy.yaml'), '# A comment.\n');
  expect(generate('--out', 'out').status).toBe(0);
  expect(times()).toEqual(before);
  expect(Object.keys(before).length).toBeGreaterThan(10);
});

test('reports an error with file and line, and writes nothing', () => {
  appendFileSync(join(directory, 'driver.yaml'), '- cuNowhere\n');
  expect(generate('--out', 'out')).toMatchObject({
    status: 1,
    stderr: 'driver.yaml:2: cuNowhere is not described in cuda-api/calls/.\n',
  });
  expect(readdirSync(directory)).not.toContain('out');
});

test('without anything to do, or with an unknown option, it prints its usage', () => {
  expect(generate('--outward')).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('Usage: node cuda-api/dist/generate.js'),
  });
  expect(generate()).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('Usage: node cuda-api/dist/generate.js'),
  });
});
