import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { runChild } from './child.js';

const CHILD = new URL('./child.js', import.meta.url).href;

test('runChild() resolves to the exit status, or 128 + the signal', async () => {
  expect(await runChild('/bin/sh', ['sh', '-c', 'exit 7'], process.env)).toBe(7);
  expect(await runChild('/bin/sh', ['sh', '-c', 'kill -SEGV $$'], process.env)).toBe(128 + 11);
});

test('runChild() starts the program with the name that the user gave as argv[0]', async () => {
  expect(await runChild('/bin/sh', ['my-name', '-c', 'test "$0" = my-name'], process.env)).toBe(0);
});

test('runChild() reports why a file cannot be started', async () => {
  await expect(runChild('/nonexistent', ['/nonexistent'], {})).rejects.toThrow(
    '/nonexistent could not be started: no such file or directory.',
  );
});

test.each(['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR1'] as const)(
  '%s reaches the program',
  async (signal) => {
    const shell = `trap 'echo got; exit 9' ${signal.slice(3)}; echo ready; while :; do sleep \
0.05; done`;
    const script =
      `import { runChild } from ` +
      `'${CHILD}'; process.exitCode = await runChild('/bin/sh', ['sh', '-c', ` +
      `${JSON.stringify(shell)}], process.env);`;
    // Its own session: no terminal sends the program a second signal.
    const parent = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true,
    });
    let output = '';
    parent.stdout.on('data', (data: Buffer) => {
      output += data.toString();
      if (output === 'ready\n') parent.kill(signal);
    });
    const [status] = await once(parent, 'close');
    expect([output, status]).toEqual(['ready\ngot\n', 9]);
  },
);
