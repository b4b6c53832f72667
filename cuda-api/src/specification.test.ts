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

/** What is wrong with the golden specification and one more file. */
function mistake(file: string, text: string): SpecificationError {
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

test('the golden specification itself is accepted', () => {
  expect(() => readSpecification(directory)).not.toThrow();
});

describe('a mistake in a call is refused with file and line', () => {
  test.each<[string, string, number, RegExp]>([
    ['no list', 'cuWrong: 1\n', 1, /a list is expected/],
    [
      'YAML that does not parse',
      '- call: cuWrong\n  names: {cuWrong: 2000\n- call: cuOther\n',
      3,
      /./,
    ],
    ['no name', '- mode: local\n', 1, /"call" is missing/],
    ['no version', '- call: cuWrong\n  mode: local\n', 1, /"names" is missing/],
    ['no mode', call(), 1, /"mode" is missing/],
    [
      'a mode that does not exist',
      call('  mode: fast'),
      3,
      /"fast" is none of: unsupported, refused, constant, local/,
    ],
    [
      'a key that does not exist',
      call('  mode: local', '  waits: true'),
      4,
      /"waits" is not known here/,
    ],
    [
      'a version that is no number',
      '- call: cuWrong\n  mode: local\n  names: {cuWrong: new}\n',
      3,
      /a whole number/,
    ],
    [
      'a call described twice',
      call('  mode: local') + call('  mode: local'),
      4,
      /described already in calls\/wrong.yaml:1/,
    ],
    [
      'an entry point taken already',
      '- call: cuWrong\n  mode: local\n  names: {cuToyOpen: 3000}\n',
      1,
      /cuToyOpen from version 3000 on is cuToyOpen_v2/,
    ],
    ['both variants', call('  mode: local', '  ptsz: 7000', '  ptds: 7000'), 5, /not both/],
    [
      'a type that is not declared',
      parameters('CUthing thing'),
      5,
      /type of thing is not declared/,
    ],
    ['a parameter without a name', parameters('int'), 5, /"int" is not a type and a name/],
    [
      'a word that does not exist',
      parameters('int* x: outward'),
      5,
      /"outward" is no word for a parameter/,
    ],
    [
      'a pointer without a direction',
      parameters('int n', 'int* x'),
      6,
      /x is a pointer: say what it is/,
    ],
    ['a value as an answer', parameters('int x: out'), 5, /x is no pointer/],
    ['an answer that is const', parameters('const int* x: out'), 5, /cannot be "out"/],
    ['a string that is none', parameters('char* x: string'), 5, /its type is const char\*/],
    [
      'a struct with pointers',
      parameters('const CUtoyNode* x: in'),
      5,
      /CUtoyNode holds callback, and CUtoyCallback is a pointer/,
    ],
    [
      'a length that is no parameter',
      parameters('const int* x: in[count]'),
      5,
      /count, the length of x, is no parameter/,
    ],
    [
      'a length that is no number',
      parameters('const int* x: in[count]', 'CUstream count'),
      5,
      /count, the length of x, is no number/,
    ],
    [
      'an owner that is no handle',
      parameters('CUmodule* x: out owner=n', 'int n'),
      5,
      /n, the owner of x, is no handle/,
    ],
    ['a new object of unknown cost', parameters('CUstream* x: out'), 1, /"allocates" is missing/],
    [
      'memory that a local call takes',
      call('  mode: local', '  allocates: host'),
      1,
      /it takes no memory there/,
    ],
    [
      'a kind of memory that does not exist',
      call('  mode: call', '  allocates: much'),
      4,
      /"much" is none of: nothing, device, host/,
    ],
    [
      'an object without a place in the order',
      call('  mode: call', '  ordered: false', '  parameters:', '    - CUstream x'),
      1,
      /cuWrong names an object that another call may destroy/,
    ],
    ['a destroyed number', parameters('int x: destroys'), 5, /x is no handle/],
    ['a handle that may be null', parameters('const CUstream* x: in?'), 5, /0 when there is none/],
    [
      'a description of a call that has no frame',
      call('  mode: local', '  parameters:', '    - int* x: out'),
      5,
      /needs its type and name only/,
    ],
    [
      'an answer of an async call',
      call('  mode: async', '  parameters:', '    - int* x: out'),
      5,
      /async call has none/,
    ],
    [
      'a destroying call that waits',
      call('  mode: wait', '  parameters:', '    - CUstream x: destroys'),
      5,
      /keep its place in the order/,
    ],
    [
      'a local call with a frame',
      call('  mode: local', '  frame: custom'),
      1,
      /never reaches the worker/,
    ],
    [
      'a frame of its own without a client',
      call('  mode: call', '  frame: custom'),
      1,
      /write "client: custom" too/,
    ],
    [
      'a frame of its own and a body',
      call('  mode: call', '  client: custom', '  worker: custom', '  frame: custom'),
      1,
      /written by hand anyway/,
    ],
    [
      'an unsupported call with a body',
      call('  mode: unsupported', '  client: custom'),
      1,
      /nothing of it is written by hand/,
    ],
    [
      'a variant without a stream',
      call('  mode: call', '  ptds: 7000', '  submits: nothing'),
      1,
      /per-thread variant but no CUstream/,
    ],
    ['the same as nothing', call('  mode: same'), 1, /belong together/],
    [
      'the same as a call that is not there',
      call('  mode: same', '  same: cuNowhere'),
      1,
      /cuNowhere is no call/,
    ],
    [
      'the same as a call that is not supported',
      call('  mode: same', '  same: cuToyLink'),
      1,
      /does nothing of its own \(mode: unsupported\)/,
    ],
    [
      'a variant of a call that is the same',
      call('  mode: same', '  same: cuToyInit', '  ptsz: 7000'),
      1,
      /"mode: same" cannot say/,
    ],
    [
      'the same as a call with other parameters',
      call('  mode: same', '  same: cuToyInit'),
      1,
      /has other parameters/,
    ],
    [
      'a window for a call that does not travel',
      call('  mode: local', '  window: always'),
      1,
      /needs no window/,
    ],
    [
      'a window without an order',
      call('  mode: call', '  ordered: false', '  window: always'),
      1,
      /cannot wait for a window/,
    ],
    [
      'a window for a call that waits',
      call('  mode: wait', '  window: always'),
      1,
      /cannot wait for a window/,
    ],
    [
      'a window without a stream',
      call('  mode: call', '  window: always'),
      1,
      /no CUstream to need a window for/,
    ],
    [
      'a window for a copy of unknown length',
      call(
        '  mode: call',
        '  submits: copy',
        '  window: small',
        '  parameters:',
        '    - CUstream stream',
      ),
      1,
      /needs one size_t, the bytes that are copied/,
    ],
    [
      'a window of another kind',
      call('  mode: call', '  window: large'),
      4,
      /"large" is none of: always, small/,
    ],
    [
      'a stream without a word about work',
      call('  mode: call', '  parameters:', '    - CUstream stream'),
      1,
      /write "submits: kernel"/,
    ],
    [
      'a variant without a word about work',
      call('  mode: local', '  ptds: 7000'),
      1,
      /write "submits: kernel"/,
    ],
    [
      'work without a window',
      call('  mode: call', '  submits: copy', '  parameters:', '    - CUstream stream'),
      1,
      /has a "window" if it submits work, and only then \(submits: copy\)/,
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
      /has a "window" if it submits work, and only then \(submits: nothing\)/,
    ],
    [
      'a marker that waits as work does',
      call(
        '  mode: call',
        '  submits: marker',
        '  window: always',
        '  parameters:',
        '    - CUstream stream',
      ),
      1,
      /"window: marker" belongs to "submits: marker" \(submits: marker\)/,
    ],
    [
      'work of another kind',
      call('  mode: local', '  submits: heat'),
      4,
      /"heat" is none of: kernel, copy, memset, marker, nothing/,
    ],
    [
      'an internal call with a name of CUDA',
      '- call: cuWrong\n  internal: true\n  mode: call\n',
      1,
      /does not begin with "cu"/,
    ],
    [
      'an internal call that is exported',
      '- call: wrong\n  internal: true\n  mode: call\n  names: {wrong: 1}\n',
      1,
      /no program can call it/,
    ],
  ])('%s', (_, text, line, sentence) => {
    const error = mistake(CALLS, text);
    expect([error.file, error.line]).toEqual([CALLS, line]);
    expect(error.sentence).toMatch(sentence);
    expect(error.message).toBe(`${CALLS}:${line}: ${error.sentence}`);
  });
});

describe('a mistake in a type is refused with file and line', () => {
  test.each<[string, string, number, RegExp]>([
    ['no type at all', '- value: 3\n', 1, /a type is one of: enum, handle/],
    [
      'a field that is none',
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
      'a word that no field knows',
      '- struct: CUwrong\n  fields:\n    - void* x: hidden\n',
      3,
      /"hidden" is none of: opaque/,
    ],
    [
      'a value that is no number',
      '- enum: CUwrong\n  values:\n    CU_A: 1\n    CU_B: two\n',
      4,
      /a whole number/,
    ],
    [
      'a type declared twice',
      '- typedef: CUdevice\n  type: int\n',
      1,
      /declared already in types\/toy.yaml/,
    ],
    [
      'types that need each other',
      '- typedef: CUone\n  type: CUtwo\n- typedef: CUtwo\n  type: CUone\n',
      1,
      /needs itself/,
    ],
    ['a handle without a tag', '- handle: CUwrong\n', 1, /"tag" is missing/],
  ])('%s', (_, text, line, sentence) => {
    const error = mistake(TYPES, text);
    expect([error.file, error.line]).toEqual([TYPES, line]);
    expect(error.sentence).toMatch(sentence);
  });
});

describe('a mistake in driver.yaml is refused with file and line', () => {
  test.each<[string, number, RegExp]>([
    ['- cuToyInit\n- cuNowhere\n', 2, /cuNowhere is no call/],
    ['- cuToyOpen_v2\n', 1, /cuToyOpen_v2 is in the table already: it travels/],
  ])('%j', (text, line, sentence) => {
    const error = mistake('driver.yaml', text);
    expect([error.file, error.line]).toEqual(['driver.yaml', line]);
    expect(error.sentence).toMatch(sentence);
  });
});

test('a second mistake does not hide the first', () => {
  const toy = readFileSync(join(directory, 'calls/toy.yaml'), 'utf8');
  const error = mistake(
    'calls/toy.yaml',
    toy.replace('mode: wait', 'mode: wat').replace('- size_t bytes', '- size_t'),
  );
  expect(toy.split('\n')[error.line - 1]).toContain('mode: wait');
});
