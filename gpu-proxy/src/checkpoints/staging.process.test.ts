import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mostOfDump } from './staging.js';

const MiB = 2 ** 20;

const GROWING = `
import mmap, os, sys
kept = [mmap.mmap(-1, 2 ** 32)]
for line in sys.stdin:
    kept.append(mmap.mmap(-1, 64 * 2 ** 20, flags=getattr(mmap, line.strip())))
    kept[-1].write(b"x" * len(kept[-1]))
    os.write(1, b"ready\\n")  # in one piece, also without buffers
`;

test('the limit on the files of a process follows the memory that it has', async () => {
  const child = spawn('python3', ['-c', GROWING]);
  try {
    const most = [];
    for (const kind of ['PRIVATE', 'PRIVATE', 'SHARED']) {
      child.stdin.write(`MAP_${kind}\n`);
      await once(child.stdout, 'data');
      most.push(await mostOfDump(child.pid as number));
    }
    expect(most[0]).toBeLessThan(300 * MiB);
    for (const [index, bytes] of most.slice(1).entries()) {
      expect(bytes - (most[index] as number)).toBeGreaterThanOrEqual(64 * MiB);
      expect(bytes - (most[index] as number)).toBeLessThan(80 * MiB);
    }
  } finally {
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
});
