import { findUndocumented } from './environment-page.js';
import { compareExports, findForbiddenLibraries, readExportsMap } from './interposer.js';
import { findUnknownHosts } from './known-hosts.js';
import { findUntold } from './log-sentences.js';
import { findOutput } from './no-output.js';
import type { TrackedFile } from './tracked-files.js';

/** Apart from the hosts, so that this file does not break the rule that it tests. */
const SCHEME = 'https://';

function file(path: string, text: string): TrackedFile {
  return { path, text: () => text };
}

test.each([
  ['dist/x.js', 'code', 'lies in a directory of build outputs'],
  ['gpu-proxy/node_modules/x/y.js', 'code', 'lies in a directory of build outputs'],
  ['x.bin', 'a\0b', 'is a binary file'],
  ['big.txt', 'x'.repeat(600_000), 'too large to review'],
  ['wire/calls.cpp', '// Generated. Do not edit, change cuda-api/.', 'is generated'],
])('findOutput() refuses %s', (path, text, problem) => {
  expect(findOutput(file(path, text))).toEqual([expect.stringContaining(problem)]);
});

test('findOutput() accepts sources, and what the generator is expected to write', () => {
  expect(findOutput(file('builder/x.ts', 'its banner: Generated. Do not edit'))).toEqual([]);
  expect(findOutput(file('cuda-api/golden/expected/x.h', '// Generated. Do not edit, change cuda-api/.'))).toEqual([]);
});

test('findUnknownHosts() names each unknown host once', () => {
  const text = `${SCHEME}github.com/x ${SCHEME}docs.nvidia.com/y http://localhost:1 ${SCHEME}packages.example/a ${SCHEME}packages.example/b`;
  expect(findUnknownHosts(file('a.md', text))).toEqual([expect.stringContaining('a.md names packages.example:')]);
});

test('findUnknownHosts() lets the lock file name homes but no downloads', () => {
  const home = `"url": "${SCHEME}sponsor.example"`;
  expect(findUnknownHosts(file('package-lock.json', home))).toEqual([]);
  expect(findUnknownHosts(file('package-lock.json', `"resolved": "${SCHEME}packages.example/x.tgz"`))).toHaveLength(1);
  expect(findUnknownHosts(file('package-lock.json', '"resolved": "gpu-proxy"'))).toEqual([]);
});

test('compareExports() finds what is missing and what is too much', () => {
  const specified = readExportsMap('{\n  global:\n    cuInit;\n    cuMemAlloc_v2;\n  local: *;\n};');
  expect(specified).toEqual(['cuInit', 'cuMemAlloc_v2']);
  expect(compareExports(specified, ['cuInit', 'cuMemAlloc_v2'])).toEqual([]);
  expect(compareExports(specified, ['cuInit', 'helper'])).toEqual([
    'cuMemAlloc_v2 is specified and not exported.',
    expect.stringContaining('helper is exported'),
  ]);
  expect(compareExports([], [])).toHaveLength(1);
});

test('findForbiddenLibraries() lets libc pass and nothing else', () => {
  const line = (library: string) => ` 0x0000000000000001 (NEEDED)             Shared library: [${library}]\n`;
  expect(findForbiddenLibraries(line('libc.so.6') + line('ld-linux-x86-64.so.2'))).toEqual([]);
  expect(findForbiddenLibraries(line('libstdc++.so.6') + line('libc.so.6'))).toEqual([expect.stringContaining('libstdc++.so.6')]);
});

test('findUndocumented() compares what code reads with the page', () => {
  const code = `getenv("NVIDIA_VIRTUAL_A"); process.env['NVIDIA_VIRTUAL_B']; build('-DNVIDIA_VIRTUAL_FUZZ=ON')`;
  expect(findUndocumented('x.ts', code, 'explains `NVIDIA_VIRTUAL_A`')).toEqual([expect.stringContaining('x.ts reads NVIDIA_VIRTUAL_B')]);
  const list = '{"CUDA_A", "CUDA_B"}';
  const problems = findUndocumented('native/worker/environment.cpp', list, 'explains `CUDA_A`');
  expect(problems).toEqual([expect.stringContaining('reads CUDA_B')]);
  expect(findUndocumented('x.cpp', list, '')).toEqual([]);
});

test('findUntold() compares what the program is told with the page', () => {
  const code = 'log("no GPU at %s: %zu bytes", path, n); log(\n      "all is lost"); log("%.*s", length, text);';
  expect(findUntold(file('interposer/x.cpp', code), 'it says: no GPU at …: … bytes')).toEqual([
    expect.stringContaining('interposer/x.cpp says "all is lost"'),
  ]);
});
