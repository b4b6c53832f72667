import { Command } from 'commander';
import { backendOptions, type GpuOptions, gpuOption, memoryOption, type ShareOptions, shareOptions } from './options.js';

function parse(...args: string[]): GpuOptions & ShareOptions {
  const command = new Command('x').exitOverride().configureOutput({ writeErr: () => {} });
  for (const option of [...backendOptions(), gpuOption('all'), memoryOption('all'), ...shareOptions()]) command.addOption(option);
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

test('what an allocation may be asked to be', () => {
  const asked = parse('--share', '25', '--policy', 'fixed', '--priority', '-5', '--mode', 'exclusive');
  expect(asked).toEqual({ share: 25, policy: 'fixed', priority: -5, mode: 'exclusive' });
});

test.each([
  [['--share', '0'], '--share is "0", which is not allowed: give a whole number, 1 to 100.'],
  [['--share', '1.5'], '--share is "1.5", which is not allowed'],
  [['--priority', '101'], '--priority is "101", which is not allowed: give a whole number, -100 to 100.'],
  [['--policy', 'greedy'], 'Allowed choices are burst, fixed'],
  [['--memory', 'lots'], '--memory is "lots", which is no memory size'],
  [['--gpu', 'GPU-1'], '--gpu is "GPU-1", which names no GPU: give an index (0, 1, ...) or a UUID'],
  [['--gpu', '-1'], '--gpu is "-1", which names no GPU'],
  [['--backend', 'fast'], 'Allowed choices are auto, real, simulated'],
])('%j is refused with key, value and what is allowed', (args, sentence) => {
  expect(() => parse(...args)).toThrow(sentence);
});
