import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { ALLOCATION_OPTIONS } from '@nvidia-virtual/node-state/allocation-options';
import { flagsOf } from '@nvidia-virtual/service/configuration/flags';
import { type Given, loadFlags } from '@nvidia-virtual/service/configuration/load';
import { optionsOf } from '@nvidia-virtual/service/configuration/option';
import { Command } from 'commander';
import { loadConfiguration } from './configuration.js';
import { CONFIGURATION_FILE, NODE_OPTIONS } from './schema.js';

let directory: string;
let file: string;
beforeAll(() => {
  directory = mkdtempSync(path.join(tmpdir(), 'configuration-'));
  file = path.join(directory, 'node.yaml');
});
afterAll(() => rmSync(directory, { recursive: true }));

/** Parses the arguments as serve does. */
function collect(args: readonly string[]): Given['flags'] {
  const command = new Command('x').exitOverride().configureOutput({ writeErr: () => {} });
  for (const flag of [...flagsOf(CONFIGURATION_FILE), ...flagsOf(NODE_OPTIONS)])
    command.addOption(flag);
  return command.parse(args, { from: 'user' }).opts();
}

function load(given: {
  flags?: readonly string[];
  environment?: NodeJS.ProcessEnv;
  yaml?: string;
}) {
  if (given.yaml !== undefined) writeFileSync(file, given.yaml);
  const flags = collect([
    ...(given.yaml === undefined ? [] : ['--config', file]),
    ...(given.flags ?? []),
  ]);
  return loadConfiguration({ flags, environment: given.environment ?? {} });
}

function problemsOf(given: Parameters<typeof load>[0]): string[] {
  try {
    load(given);
    return [];
  } catch (error) {
    const [, ...lines] = (error as Error).message.split('\n  ');
    return lines.length > 0 ? lines : [(error as Error).message];
  }
}

test('without arguments, every option has its default, and each default is valid', () => {
  for (const { option } of [...optionsOf(NODE_OPTIONS), ...optionsOf(ALLOCATION_OPTIONS)]) {
    const { default: text } = option.details;
    if (text !== undefined) expect([text, option.kind.entry(text)]).not.toEqual([text, undefined]);
  }
  expect(load({})).toMatchObject({
    backend: 'auto',
    gpu: undefined,
    window: 5000,
    limits: { sessions: 64, pinnedMemory: 16 * 2 ** 30 },
    ledger: { url: undefined, tls: { ca: undefined } },
  });
});

test('no two options share a flag or a variable', () => {
  const options = [...optionsOf(NODE_OPTIONS), ...optionsOf(CONFIGURATION_FILE)];
  expect(new Set(options.map(({ flag }) => flag)).size).toBe(options.length);
  expect(new Set(options.map(({ variable, flag }) => variable ?? flag)).size).toBe(options.length);
});

test('flags precede the environment, which precedes the file', () => {
  const yaml = 'window: 10ms\nlogLevel: debug\nlimits:\n  sessions: 3\n';
  const environment = { NVIDIA_VIRTUAL_WINDOW: '20ms', NVIDIA_VIRTUAL_LIMITS_SESSIONS: '2' };
  const configuration = load({ flags: ['--limits-sessions', '1'], environment, yaml });
  expect([configuration.logLevel, configuration.window, configuration.limits.sessions]).toEqual([
    'debug',
    20_000,
    1,
  ]);
});

test('the environment may name the file, and empty variables and keys count as unset', () => {
  writeFileSync(file, 'window:\nledger:\nlogLevel: warn\n');
  const environment = { NVIDIA_VIRTUAL_CONFIG: file, NVIDIA_VIRTUAL_NODE: '' };
  expect(loadConfiguration({ flags: {}, environment })).toMatchObject({
    logLevel: 'warn',
    window: 5000,
    node: undefined,
  });
});

test('lists and mappings are parsed equally from flags, environment and file', () => {
  const flags = [
    '--gpu',
    '0',
    '--gpu',
    '2',
    '--gpu-mode',
    'exclusive',
    '--gpu-mode',
    '1=concurrent',
  ];
  const environment = {
    NVIDIA_VIRTUAL_GPU: '0, 2',
    NVIDIA_VIRTUAL_GPU_MODE: 'exclusive,1=concurrent',
  };
  const expected = {
    gpu: ['0', '2'],
    gpuMode: { all: 'exclusive', some: new Map([['1', 'concurrent']]) },
  };
  expect(load({ flags })).toMatchObject(expected);
  expect(load({ environment })).toMatchObject(expected);
  expect(load({ yaml: 'gpu: [0, 2]\ngpuMode: [exclusive, 1=concurrent]\n' })).toMatchObject(
    expected,
  );
  expect(load({ yaml: 'gpuMode:\n  1: concurrent\n' }).gpuMode).toEqual({
    all: undefined,
    some: new Map([['1', 'concurrent']]),
  });
});

test('all errors are reported at once, with place, value and allowed values', () => {
  const yaml =
    'window: 5\nlimits:\n  handles: [1, 2]\n  colour: red\ngpu: [0, GPU-1]\nledger: ' +
    'full\n"":\n  - 1\n';
  const known = optionsOf(NODE_OPTIONS).map(({ key }) => key.split('.')[0]);
  const names = [...new Set(known)].join(', ');
  expect(
    problemsOf({
      flags: ['--log-level', 'loud'],
      environment: { NVIDIA_VIRTUAL_LIMITS_THREADS: '0' },
      yaml,
    }).sort(),
  ).toEqual(
    [
      '--log-level is "loud", but must be trace, debug, info, warn, error or fatal.',
      'NVIDIA_VIRTUAL_LIMITS_THREADS is "0", but must be a whole number from 1 to 65536.',
      `${file}:1: window is "5", but must be a duration from 1ms to 100ms in us, ms or s.`,
      `${file}:3: limits.handles is a list, but must be a whole number from 16 to 16777216.`,
      `${file}:4: limits.colour is not an option. The options are sessions, pinnedMemory, ` +
        `threads, handles.`,
      `${file}:5: gpu is "GPU-1", but must be a GPU's index (0, 1, ...) or UUID (GPU-...).`,
      `${file}:6: ledger is "full", but must be names and values; names are url, username, ` +
        `passwordFile, tls.`,
      `${file}:7:  is not an option. The options are ${names}.`,
    ].sort(),
  );
});

test('an overridden value must be valid, too', () => {
  expect(problemsOf({ flags: ['--window', '5ms'], yaml: '\n\nwindow: long' })).toEqual([
    expect.stringContaining(`${file}:3: window is "long"`),
  ]);
});

test.each([
  ['[a', 'FILE:1'],
  ['node: a\nnode: b\n', 'FILE:2'],
  ['- node\n', 'FILE:1: the file is a list'],
  ['node: &x a\nlogLevel: *x\n', 'FILE:2: logLevel is an alias'],
  ['__proto__: {}\n', 'FILE:1: __proto__ is not an option'],
])('%j is refused with file and line', (yaml, place) => {
  expect(problemsOf({ yaml })[0]).toContain(place.replace('FILE', file));
});

test('a file that cannot be read is refused', () => {
  expect(problemsOf({ flags: ['--config', '/nonexistent.yaml'] })).toEqual([
    '/nonexistent.yaml is not a valid configuration: no such file or directory. Fix it, or ' +
      'set another file with --config.',
  ]);
});

test.each([
  [{ username: 'me' }, ['ledger.url.', 'ledger.passwordFile.']],
  [{ url: 'redis://host', username: 'me', passwordFile: '/p' }, []],
  [{ url: 'redis://host', tls: { ca: '/ca' } }, ['ledger.url to begin with rediss://']],
  [{ url: 'rediss://host', tls: { ca: '/ca', cert: '/c' } }, ['ledger.tls.key.']],
  [{ url: 'rediss://host', tls: { cert: '/c', key: '/k' } }, []],
  [{ url: 'wrong', passwordFile: '/p' }, ['but must be redis://HOST']],
])('%j: related options require each other', (ledger, needed) => {
  const problems = problemsOf({ yaml: JSON.stringify({ ledger }) });
  expect(problems).toEqual(needed.map((text) => expect.stringContaining(text)));
});

test('a password in a URL is not printed', () => {
  const [problem] = problemsOf({
    environment: { NVIDIA_VIRTUAL_LEDGER_URL: 'redis://me:secret@host' },
  });
  expect(problem).toMatch(/NVIDIA_VIRTUAL_LEDGER_URL is "redis:\/\/\*\*\*@host"/);
});

test('loadFlags() reads the options of an allocation, and reports the same errors', () => {
  expect(loadFlags(ALLOCATION_OPTIONS, { memory: '1MiB', share: '25%' })).toEqual({
    name: undefined,
    memory: 2 ** 20,
    share: 25,
    policy: 'burst',
    priority: 0,
    mode: 'exclusive',
  });
  expect(() => loadFlags(ALLOCATION_OPTIONS, { share: '0', policy: 'lazy' })).toThrow(
    'The configuration has 2 errors: ',
  );
});
