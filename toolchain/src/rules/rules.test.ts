import { findWrongSubject } from './commit-subjects.js';
import { findUndocumented } from './environment-page.js';
import { findIncludeCircles } from './include-circles.js';
import { compareExports, findForbiddenLibraries, readExportsMap } from './interposer.js';
import { findUnknownHosts } from './known-hosts.js';
import { findUntold } from './log-sentences.js';
import { findOutput } from './no-output.js';
import { findSleeps } from './no-sleep.js';
import { findOtherVersions } from './one-version.js';
import { findGpuProxyImport } from './package-imports.js';
import { findLongCells, findLongLines, findLongSentences } from './prose.js';
import type { TrackedFile } from './tracked-files.js';

/** Separate from the hosts, so that this file does not violate the tested rule. */
const SCHEME = 'https://';

function file(path: string, text: string): TrackedFile {
  return { path, text: () => text };
}

test.each([
  ['dist/x.js', 'code', 'is in a directory for build outputs'],
  ['gpu-proxy/node_modules/x/y.js', 'code', 'is in a directory for build outputs'],
  ['x.bin', 'a\0b', 'is a binary file'],
  ['big.txt', 'x'.repeat(600_000), 'too large to review'],
  ['wire/calls.cpp', '// Generated. Do not edit, change cuda-api/.', 'is generated'],
])('findOutput() refuses %s', (path, text, problem) => {
  expect(findOutput(file(path, text))).toEqual([expect.stringContaining(problem)]);
});

test('findOutput() accepts sources and golden files', () => {
  expect(findOutput(file('builder/x.ts', 'its banner: Generated. Do not edit'))).toEqual([]);
  expect(
    findOutput(
      file('cuda-api/golden/expected/x.h', '// Generated. Do not edit, change cuda-api/.'),
    ),
  ).toEqual([]);
});

test('findSleeps() finds the sleeps of tests', () => {
  const wait = `${'set'}Timeout(resolve, 50)`;
  expect(findSleeps(file('a/x_test.cpp', '\n  usleep(20);'))).toEqual([
    'a/x_test.cpp:2 sleeps: wait for a condition.',
  ]);
  expect(findSleeps(file('a/x.test.ts', wait))).toHaveLength(1);
  expect(findSleeps(file('a/x.ts', wait))).toEqual([]);
});

test('findUnknownHosts() names each unknown host once', () => {
  const text =
    `${SCHEME}github.com/x ${SCHEME}docs.nvidia.com/y http://localhost:1 ` +
    `${SCHEME}packages.example/a ${SCHEME}packages.example/b`;
  expect(findUnknownHosts(file('a.md', text))).toEqual([
    expect.stringContaining('a.md names packages.example:'),
  ]);
});

test('findUnknownHosts() allows homepages but no downloads in the lock file', () => {
  const home = `"url": "${SCHEME}sponsor.example"`;
  expect(findUnknownHosts(file('package-lock.json', home))).toEqual([]);
  expect(
    findUnknownHosts(file('package-lock.json', `"resolved": "${SCHEME}packages.example/x.tgz"`)),
  ).toHaveLength(1);
  expect(findUnknownHosts(file('package-lock.json', '"resolved": "gpu-proxy"'))).toEqual([]);
});

test('compareExports() finds missing and extra functions', () => {
  const specified = readExportsMap(
    '{\n  global:\n    cuInit;\n    cuMemAlloc_v2;\n  local: *;\n};',
  );
  expect(specified).toEqual(['cuInit', 'cuMemAlloc_v2']);
  expect(compareExports(specified, ['cuInit', 'cuMemAlloc_v2'])).toEqual([]);
  expect(compareExports(specified, ['cuInit', 'helper'])).toEqual([
    'cuMemAlloc_v2 is specified but not exported.',
    expect.stringContaining('helper is exported'),
  ]);
  expect(compareExports([], [])).toHaveLength(1);
});

test('findForbiddenLibraries() allows only libc', () => {
  const line = (library: string) =>
    ` 0x0000000000000001 (NEEDED)             Shared library: [${library}]\n`;
  expect(findForbiddenLibraries(line('libc.so.6') + line('ld-linux-x86-64.so.2'))).toEqual([]);
  expect(findForbiddenLibraries(line('libstdc++.so.6') + line('libc.so.6'))).toEqual([
    expect.stringContaining('libstdc++.so.6'),
  ]);
});

test('findUndocumented() finds variables that the page does not list', () => {
  const code =
    `getenv("NVIDIA_VIRTUAL_A"); process.env['NVIDIA_VIRTUAL_B']; ` +
    `build('-DNVIDIA_VIRTUAL_FUZZ=ON')`;
  expect(findUndocumented('x.ts', code, 'explains `NVIDIA_VIRTUAL_A`')).toEqual([
    expect.stringContaining('x.ts reads NVIDIA_VIRTUAL_B'),
  ]);
  const list = '{"CUDA_A", "CUDA_B"}';
  const problems = findUndocumented(
    'native/worker/driver/environment.cpp',
    list,
    'explains `CUDA_A`',
  );
  expect(problems).toEqual([expect.stringContaining('reads CUDA_B')]);
  expect(findUndocumented('x.cpp', list, '')).toEqual([]);
});

test('findUntold() finds messages that the page does not list', () => {
  const code =
    'log("no GPU at %s: %zu bytes", path, n); log(\n      "all is lost"); log("%.*s", length, ' +
    'text);';
  expect(findUntold(file('interposer/x.cpp', code), 'it says: no GPU at …: … bytes')).toEqual([
    expect.stringContaining('interposer/x.cpp says "all is lost"'),
  ]);
});

test('findWrongSubject() requires an area and limits the length', () => {
  expect(findWrongSubject('gpu-proxy, ledger: renew leases')).toEqual([]);
  expect(findWrongSubject("Merge branch 'main' into f1")).toEqual([]);
  expect(findWrongSubject('renew leases')).toEqual([
    expect.stringContaining('does not begin with an area'),
  ]);
  expect(findWrongSubject(`wire: ${'x'.repeat(70)}`)).toEqual([
    expect.stringContaining('has 76 characters'),
  ]);
});

test('findGpuProxyImport() refuses imports of gpu-proxy in production code', () => {
  const text = "import { Node } from '@nvidia-virtual/gpu-proxy/node';";
  expect(findGpuProxyImport(file('usage-api/src/main.ts', text))).toEqual([
    expect.stringContaining('usage-api/src/main.ts imports'),
  ]);
  expect(findGpuProxyImport(file('usage-api/src/testing/x.ts', text))).toEqual([]);
  expect(findGpuProxyImport(file('usage-api/src/main.test.ts', text))).toEqual([]);
  expect(findGpuProxyImport(file('test/main.ts', text))).toEqual([]);
  expect(
    findGpuProxyImport(file('usage-api/src/main.ts', "import '@nvidia-virtual/service/log';")),
  ).toEqual([]);
});

test('findOtherVersions() names each copy that differs, and packages with a version', () => {
  const files = (chart: string, more: readonly TrackedFile[] = []) => [
    file('charts/nvidia-virtual/Chart.yaml', `version: ${chart}\nappVersion: 1.2.3\n`),
    file('kubectl-plugin/src/version.ts', "export const VERSION = '1.2.3';\n"),
    file('package-lock.json', '{\n  "version": "1.2.3",\n'),
    file('CHANGELOG.md', '# Changes\n\n## Unreleased\n\n## 1.2.3, 2026-11-26\n\n## 1.0.0\n'),
    ...more,
  ];
  expect(findOtherVersions(files('1.2.3'), '1.2.3')).toEqual([]);
  expect(findOtherVersions(files('1.2.2'), '1.2.3')).toEqual([
    'charts/nvidia-virtual/Chart.yaml has the version 1.2.2, but package.json 1.2.3.',
  ]);
  expect(findOtherVersions(files('1.2.3').slice(0, 3), '1.2.3')).toEqual([
    'CHANGELOG.md has the version none, but package.json 1.2.3.',
  ]);
  const versioned = file('wire/package.json', '{"version": "1.2.3"}');
  const without = file('ledger/package.json', '{"name": "ledger"}');
  expect(findOtherVersions(files('1.2.3', [versioned, without]), '1.2.3')).toEqual([
    expect.stringContaining('wire/package.json has a version'),
  ]);
});

const LONG = 'word '.repeat(21);

test.each([
  ['a comment', 'wire/a.cpp', `int a;\n// ${LONG}`],
  ['a paragraph', 'docs/a.md', `# Title\n${LONG}`],
  ['Python', 'test/a.py', `\nx = f('${LONG}')`],
  ['a template', 'charts/a.tpl', `\n{{- include "${LONG}" }}`],
])('findLongLines() names the line of %s', (_, path, text) => {
  expect(findLongLines(file(path, text))).toEqual([expect.stringMatching(`^${path}:2 has `)]);
});

test.each([
  ['code, which the formatters wrap', 'wire/a.cpp', `f("${LONG}");`],
  ['a table', 'docs/a.md', `| ${LONG}|`],
  ['a block of code', 'docs/a.md', `\`\`\`\n${LONG}\n\`\`\``],
  ['an address', 'wire/a.h', `// ${SCHEME}docs.nvidia.com/${'x'.repeat(100)}`],
  ['recorded programs', 'test/conformance/programs/a.cu', `// ${LONG}`],
])('findLongLines() accepts %s', (_, path, text) => {
  expect(findLongLines(file(path, text))).toEqual([]);
});

test('findLongSentences() counts the words of each sentence of a page', () => {
  const ten = 'one two three four five six seven eight nine ten';
  expect(findLongSentences(file('docs/a.md', `${ten} ${ten}\n${ten} more.`))).toEqual([
    expect.stringContaining('docs/a.md: 31 words: "one two'),
  ]);
  expect(findLongSentences(file('docs/a.md', `${ten} ${ten}: ${ten}. ${ten}.`))).toEqual([]);
  expect(findLongSentences(file('docs/a.md', `- ${ten} ${ten}\n- ${ten} ${ten}`))).toEqual([]);
  expect(findLongSentences(file('docs/a.md', `${ten} ${ten}\n\n${ten} ${ten}`))).toEqual([]);
  expect(findLongSentences(file('wire/README.md', `${ten} ${ten} ${ten} more.`))).toHaveLength(1);
  expect(findLongSentences(file('wire/a.h', `${ten} ${ten} ${ten} more.`))).toEqual([]);
});

test('findLongCells() names a paragraph in a table', () => {
  const row = `| ${'x'.repeat(198)} | ${'x'.repeat(201)} |`;
  expect(findLongCells(file('a.md', `| a | b |\n${row}`))).toEqual([
    expect.stringContaining('a.md:2 has a cell of 203 characters'),
  ]);
  expect(findLongCells(file('docs/errors.md', row))).toEqual([]);
  expect(findLongCells(file('a.md', 'x'.repeat(300)))).toEqual([]);
});

test('findIncludeCircles() finds units that include each other', () => {
  const include = (name: string): string => `#include "wire/${name}"\n`;
  const line = [file('wire/a.h', include('b.h')), file('wire/b.h', '#include <map>\n')];
  expect(findIncludeCircles([...line, file('wire/a.cpp', include('a.h'))])).toEqual([]);
  expect(
    findIncludeCircles([...line, file('wire/b.cpp', include('b.h') + include('a.h'))]),
  ).toEqual([expect.stringContaining('wire/a includes wire/b includes wire/a')]);
});
