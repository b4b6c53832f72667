import { jest } from '@jest/globals';
import { execute } from './command-line.js';

test('a kubeconfig that cannot be read is wrong usage, with a sentence', async () => {
  const written: unknown[] = [];
  const write = jest.spyOn(process.stderr, 'write').mockImplementation((text) => {
    written.push(text);
    return true;
  });
  const flags = ['--namespace', 'gpus', '--kubeconfig', '/nonexistent/config'];
  const status = await execute(['', '', 'check-install', '--release', 'one', ...flags]);
  write.mockRestore();
  expect([status, written]).toEqual([
    2,
    [
      'nvidia-virtual-release-hooks: /nonexistent/config cannot be read as a kubeconfig: no ' +
        'such file or directory. Repair it, or name another file.\n',
    ],
  ]);
});
