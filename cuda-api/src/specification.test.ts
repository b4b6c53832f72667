import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SpecificationError } from './source.js';
import { readSpecification } from './specification.js';

const GOLDEN = fileURLToPath(new URL('../golden/specification', import.meta.url));
const CALLS = 'calls/wrong.yaml';
const TYPES = 'types/wrong.yaml';

let directory = '';
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'cuda-api-'));
  cpSync(GOLDEN, directory, { recursive: true });
});
afterEach(() => rmSync(directory, { recursive: true }));

/** The error for the golden specification with one more file. */
function errorOf(file: string, text: string): SpecificationError {
  writeFileSync(join(directory, file), text);
  try {
    readSpecification(directory);
  } catch (error) {
    if (error instanceof SpecificationError) return error;
    throw error;
  }
  throw new Error(`${file} was accepted`);
}

function call(...lines: string[]): string {
  return ['- call: cuWrong', '  names: {cuWrong: 2000}', ...lines, ''].join('\n');
}

function parameters(...list: string[]): string {
  return call('  mode: call', '  parameters:', ...list.map((each) => `    - ${each}`));
}

test('accepts the golden specification', () => {
  expect(() => readSpecification(directory)).not.toThrow();
});

describe('reports an error in a call with file and line', () => {
  test.each<[string, string, number, RegExp]>([
    ['not a list', 'cuWrong: 1\n', 1, /a list is expected/],
    ['invalid YAML', '- call: cuWrong\n  names: {cuWrong: 2000\n- call: cuOther\n', 3, /./],
    ['no name', '- mode: local\n', 1, /"call" is missing/],
    ['no names', '- call: cuWrong\n  mode: local\n', 1, /"names" is missing/],
    ['no mode', call(), 1, /"mode" is missing/],
    [
      'an unknown mode',
      call('  mode: fast'),
      3,
      /"fast" is not one of: unsupported, refused, constant, local/,
    ],
    ['an unknown key', call('  mode: local', '  waits: true'), 4, /"waits" is not a known key/],
    [
      'a version that is not a number',
      '- call: cuWrong\n  mode: local\n  names: {cuWrong: new}\n',
      3,
      /an integer is expected/,
    ],
    [
      'a call that is described twice',
      call('  mode: local') + call('  mode: local'),
      4,
      /already described in calls\/wrong.yaml:1/,
    ],
    [
      'a duplicate entry point',
      '- call: cuWrong\n  mode: local\n  names: {cuToyOpen: 3000}\n',
      1,
      /cuToyOpen since version 3000 is already an entry point of cuToyOpen_v2/,
    ],
    [
      'a ptsz and a ptds variant',
      call('  mode: local', '  ptsz: 7000', '  ptds: 7000'),
      5,
      /both a ptsz and a ptds/,
    ],
    [
      'a type that is not declared',
      parameters('CUthing thing'),
      5,
      /type of thing is not declared/,
    ],
    ['a parameter without a name', parameters('int'), 5, /"int" is not a type and a name/],
    [
      'an unknown word for a parameter',
      parameters('int* x: outward'),
      5,
      /"outward" is not a known word for a parameter/,
    ],
    [
      'a pointer without a direction',
      parameters('int n', 'int* x'),
      6,
      /x is a pointer: add its direction/,
    ],
    ['an output that is not a pointer', parameters('int x: out'), 5, /x is not a pointer/],
    ['a const output', parameters('const int* x: out'), 5, /cannot be "out"/],
    ['a string of another type', parameters('char* x: string'), 5, /must be const char\*/],
    [
      'a struct with pointers',
      parameters('const CUtoyNode* x: in'),
      5,
      /CUtoyNode contains callback, and CUtoyCallback is a pointer/,
    ],
    [
      'a length that is not a parameter',
      parameters('const int* x: in[count]'),
      5,
      /count, the length of x, is not a parameter/,
    ],
    [
      'a length that is not an integer',
      parameters('const int* x: in[count]', 'CUstream count'),
      5,
      /count, the length of x, is not an integer/,
    ],
    [
      'an owner that is not a handle',
      parameters('CUmodule* x: out owner=n', 'int n'),
      5,
      /n, the owner of x, is not a parameter with a handle/,
    ],
    [
      'a new object without "allocates"',
      parameters('CUstream* x: out'),
      1,
      /"allocates" is missing/,
    ],
    [
      'a local call that allocates',
      call('  mode: local', '  allocates: host'),
      1,
      /remove "allocates"/,
    ],
    [
      'an unknown kind of memory',
      call('  mode: call', '  allocates: much'),
      4,
      /"much" is not one of: nothing, device, host/,
    ],
    [
      'an unordered call with a handle',
      call('  mode: call', '  ordered: false', '  parameters:', '    - CUstream x'),
      1,
      /cuWrong uses an object that another call may destroy/,
    ],
    ['a destroyed number', parameters('int x: destroys'), 5, /x is not a handle/],
    ['an optional handle', parameters('const CUstream* x: in?'), 5, /an absent one is 0/],
    [
      'a described parameter of a call without a frame',
      call('  mode: local', '  parameters:', '    - int* x: out'),
      5,
      /takes only a type and a name/,
    ],
    [
      'an output of an async call',
      call('  mode: async', '  parameters:', '    - int* x: out'),
      5,
      /async call has no reply/,
    ],
    [
      'a destroying call of mode "wait"',
      call('  mode: wait', '  parameters:', '    - CUstream x: destroys'),
      5,
      /keep its place in the order/,
    ],
    [
      'a local call with a custom frame',
      call('  mode: local', '  frame: custom'),
      1,
      /is not sent to the worker/,
    ],
    [
      'a custom frame without a custom client',
      call('  mode: call', '  frame: custom'),
      1,
      /"frame: custom" requires "client: custom"/,
    ],
    [
      'a custom frame and a custom worker',
      call('  mode: call', '  client: custom', '  worker: custom', '  frame: custom'),
      1,
      /remove "worker: custom"/,
    ],
    [
      'an unsupported call with a custom client',
      call('  mode: unsupported', '  client: custom'),
      1,
      /remove "client: custom"/,
    ],
    [
      'a per-thread variant without a stream',
      call('  mode: call', '  ptds: 7000', '  submits: nothing'),
      1,
      /per-thread variant but no CUstream/,
    ],
    ['mode "same" without a call', call('  mode: same'), 1, /require each other/],
    [
      'the same as an unknown call',
      call('  mode: same', '  same: cuNowhere'),
      1,
      /cuNowhere is not described/,
    ],
    [
      'the same as an unsupported call',
      call('  mode: same', '  same: cuToyLink'),
      1,
      /has no implementation \(mode: unsupported\)/,
    ],
    [
      'mode "same" with a per-thread variant',
      call('  mode: same', '  same: cuToyInit', '  ptsz: 7000'),
      1,
      /"mode: same" does not support a per-thread variant/,
    ],
    [
      'the same as a call with other parameters',
      call('  mode: same', '  same: cuToyInit'),
      1,
      /requires the parameters of cuToyInit/,
    ],
    ['a window for a local call', call('  mode: local', '  window: always'), 1, /remove "window"/],
    [
      'a window for an unordered call',
      call('  mode: call', '  ordered: false', '  window: always'),
      1,
      /cannot wait for a window/,
    ],
    [
      'a window for a call of mode "wait"',
      call('  mode: wait', '  window: always'),
      1,
      /cannot wait for a window/,
    ],
    [
      'a window without a stream',
      call('  mode: call', '  window: always'),
      1,
      /"window" requires a CUstream/,
    ],
    [
      'a window for a copy without a size',
      call(
        '  mode: call',
        '  submits: copy',
        '  window: small',
        '  parameters:',
        '    - CUstream stream',
      ),
      1,
      /requires exactly one size_t, the number of copied bytes/,
    ],
    [
      'an unknown window',
      call('  mode: call', '  window: large'),
      4,
      /"large" is not one of: always, small/,
    ],
    [
      'a stream without "submits"',
      call('  mode: call', '  parameters:', '    - CUstream stream'),
      1,
      /add "submits: kernel"/,
    ],
    [
      'a per-thread variant without "submits"',
      call('  mode: local', '  ptds: 7000'),
      1,
      /add "submits: kernel"/,
    ],
    [
      'work without a window',
      call('  mode: call', '  submits: copy', '  parameters:', '    - CUstream stream'),
      1,
      /has a "window" if and only if it submits work \(submits: copy\)/,
    ],
    [
      'a window without work',
      call(
        '  mode: call',
        '  submits: nothing',
        '  window: always',
        '  parameters:',
        '    - CUstream stream',
      ),
      1,
      /has a "window" if and only if it submits work \(submits: nothing\)/,
    ],
    [
      'a marker with the window of other work',
      call(
        '  mode: call',
        '  submits: marker',
        '  window: always',
        '  parameters:',
        '    - CUstream stream',
      ),
      1,
      /"window: marker" requires "submits: marker" \(submits: marker\)/,
    ],
    [
      'an unknown kind of work',
      call('  mode: local', '  submits: heat'),
      4,
      /"heat" is not one of: kernel, copy, memset, marker, nothing/,
    ],
    [
      'a call of a back end that never reaches one',
      call('  mode: local', '  backend: real'),
      1,
      /is not sent to the worker: remove "backend: real"/,
    ],
    [
      "an internal call with a name like CUDA's",
      '- call: cuWrong\n  internal: true\n  mode: call\n',
      1,
      /must not begin with "cu"/,
    ],
    [
      'an internal call that is exported',
      '- call: wrong\n  internal: true\n  mode: call\n  names: {wrong: 1}\n',
      1,
      /is internal: remove "names"/,
    ],
  ])('%s', (_, text, line, sentence) => {
    const error = errorOf(CALLS, text);
    expect([error.file, error.line]).toEqual([CALLS, line]);
    expect(error.sentence).toMatch(sentence);
    expect(error.message).toBe(`${CALLS}:${line}: ${error.sentence}`);
  });
});

describe('reports an error in a type with file and line', () => {
  test.each<[string, string, number, RegExp]>([
    ['an unknown kind of type', '- value: 3\n', 1, /a type is one of: enum, handle/],
    [
      'a field without a name',
      '- struct: CUwrong\n  fields:\n    - int\n',
      3,
      /"int" is not a type and a name/,
    ],
    [
      'a field whose type is not declared',
      '- struct: CUwrong\n  fields:\n    - CUthing x\n',
      1,
      /CUwrong uses CUthing/,
    ],
    [
      'an unknown word for a field',
      '- struct: CUwrong\n  fields:\n    - void* x: hidden\n',
      3,
      /"hidden" is not one of: opaque/,
    ],
    [
      'a value that is not a number',
      '- enum: CUwrong\n  values:\n    CU_A: 1\n    CU_B: two\n',
      4,
      /an integer is expected/,
    ],
    [
      'a type that is declared twice',
      '- typedef: CUdevice\n  type: int\n',
      1,
      /already declared in types\/toy.yaml/,
    ],
    [
      'types that depend on each other',
      '- typedef: CUone\n  type: CUtwo\n- typedef: CUtwo\n  type: CUone\n',
      1,
      /depends on itself/,
    ],
    ['a handle without a tag', '- handle: CUwrong\n', 1, /"tag" is missing/],
  ])('%s', (_, text, line, sentence) => {
    const error = errorOf(TYPES, text);
    expect([error.file, error.line]).toEqual([TYPES, line]);
    expect(error.sentence).toMatch(sentence);
  });
});

describe('reports an error in driver.yaml with file and line', () => {
  test.each<[string, number, RegExp]>([
    ['- cuToyInit\n- cuNowhere\n', 2, /cuNowhere is not described/],
    ['- cuToyOpen_v2\n', 1, /cuToyOpen_v2 is already in the table, because it is sent/],
  ])('%j', (text, line, sentence) => {
    const error = errorOf('driver.yaml', text);
    expect([error.file, error.line]).toEqual(['driver.yaml', line]);
    expect(error.sentence).toMatch(sentence);
  });
});

test('reports the first of two errors', () => {
  const toy = readFileSync(join(directory, 'calls/toy.yaml'), 'utf8');
  const error = errorOf(
    'calls/toy.yaml',
    toy.replace('mode: wait', 'mode: wat').replace('- size_t bytes', '- size_t'),
  );
  expect(toy.split('\n')[error.line - 1]).toContain('mode: wait');
});
