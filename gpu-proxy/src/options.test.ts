import { Command } from 'commander';
import { type GpuOptions, gpuOptions } from './options.js';

function parse(...args: string[]): GpuOptions {
  const command = new Command('x').exitOverride().configureOutput({ writeErr: () => {} });
  for (const option of gpuOptions()) command.addOption(option);
  return command.parse(args, { from: 'user' }).opts();
}

test('options are optional, and parsed', () => {
  expect(parse()).toEqual({});
  const gpus = ['--gpu', '0', '--gpu', 'GPU-01234567-89ab-cdef-0123-456789abcdef'];
  expect(parse('--backend', 'simulated', '--memory', '1MiB', '--log', '-', ...gpus)).toEqual({
    backend: 'simulated',
    memory: 2 ** 20,
    log: '-',
    gpu: [gpus[1], gpus[3]],
  });
});

test.each([
  [['--memory', 'lots'], '--memory is "lots", which is no memory size'],
  [['--gpu', 'GPU-1'], '--gpu is "GPU-1", which names no GPU: give an index (0, 1, ...) or a UUID'],
  [['--gpu', '-1'], '--gpu is "-1", which names no GPU'],
  [['--backend', 'fast'], 'Allowed choices are auto, real, simulated'],
])('%j is refused with key, value and what is allowed', (args, sentence) => {
  expect(() => parse(...args)).toThrow(sentence);
});
