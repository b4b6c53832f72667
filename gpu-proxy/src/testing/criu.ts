import { spawnSync } from 'node:child_process';

/** For tests that write processes to files: `criu` has to be installed, and suit the kernel. */
export const withCriu =
  process.getuid?.() === 0 && spawnSync('criu', ['check']).status === 0 ? test : test.skip;
