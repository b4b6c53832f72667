import { runCommand } from './command.js';

test('runCommand() returns the output and reports each line', async () => {
  const lines: string[] = [];
  const result = await runCommand('sh', ['-c', 'echo one; echo two >&2; exit 3'], {
    onLine: (line) => lines.push(line),
  });
  expect(result.status).toBe(3);
  expect(lines.sort()).toEqual(['one', 'two']);
  expect(result.output.split('\n').sort()).toEqual(['', 'one', 'two']);
});

test('runCommand() reports a missing command, or one that a signal ended, as failed', async () => {
  expect((await runCommand('/nonexistent/command', [])).status).toBe(127);
  expect((await runCommand('sh', ['-c', 'kill -9 $$'])).status).not.toBe(0);
});

test('runCommand() ends an aborted command and waits for its end', async () => {
  const ending = new AbortController();
  const onLine = () => ending.abort();
  const { status, output } = await runCommand(
    'sh',
    ['-c', 'trap "echo ended; exit 7" TERM; echo begun; while :; do sleep 0.1; done'],
    {
      onLine,
      signal: ending.signal,
    },
  );
  expect({ status, output }).toEqual({ status: 7, output: 'begun\nended\n' });
});
