import { flagsOf } from '@nvidia-virtual/service/configuration/flags';
import { loadFlags } from '@nvidia-virtual/service/configuration/load';
import type { Schema, Values } from '@nvidia-virtual/service/configuration/option';
import { Command } from 'commander';
import { CREATE_OPTIONS, RUN_OPTIONS, TOP_OPTIONS } from './options.js';

function parse<S extends Schema>(schema: S, ...args: string[]): Values<S> {
  const command = new Command('x').exitOverride();
  for (const flag of flagsOf(schema)) command.addOption(flag);
  return loadFlags(schema, command.parse(args, { from: 'user' }).opts());
}

const UUID = 'GPU-01234567-89ab-cdef-0123-456789abcdef';

test('options of run', () => {
  expect(parse(RUN_OPTIONS)).toMatchObject({
    socket: undefined,
    state: undefined,
    backend: 'auto',
    gpu: undefined,
    memory: undefined,
  });
  expect(
    parse(
      RUN_OPTIONS,
      '--backend',
      'simulated',
      '--memory',
      '1MiB',
      '--log',
      '-',
      '--gpu',
      '0',
      '--gpu',
      UUID,
    ),
  ).toMatchObject({
    ...{ backend: 'simulated', memory: 2 ** 20, log: '-', gpu: ['0', UUID] },
  });
});

test('options of an allocation', () => {
  const asked = parse(
    CREATE_OPTIONS,
    '--share',
    '25',
    '--policy',
    'fixed',
    '--priority',
    '-5',
    '--mode',
    'exclusive',
    '--gpu',
    '1',
  );
  expect(asked).toMatchObject({
    share: 25,
    policy: 'fixed',
    priority: -5,
    mode: 'exclusive',
    gpu: ['1'],
    state: '/var/lib/nvidia-virtual/state',
  });
});

test('some options have a short name', () => {
  expect(parse(TOP_OPTIONS, '-n', '2', '-o', 'json')).toMatchObject({ count: 2, output: 'json' });
});

test.each([
  [['--share', '0'], '--share is "0", but must be a whole percentage from 1 to 100'],
  [['--priority', '101'], '--priority is "101", but must be a whole number from -100 to 100.'],
  [['--policy', 'greedy'], '--policy is "greedy", but must be burst or fixed.'],
  [['--memory', 'lots'], '--memory is "lots", but must be a number above 0 with B, KB'],
  [
    ['--gpu', 'GPU-1'],
    '--gpu is "GPU-1", but must be a GPU\'s index (0, 1, ...) or UUID (GPU-...).',
  ],
])('%j is refused with key, value and allowed values', (args, sentence) => {
  expect(() => parse(CREATE_OPTIONS, ...args)).toThrow(sentence);
});
