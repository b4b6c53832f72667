import { readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { runChild } from '../child.js';
import { compileProgram } from '../cuda-program.js';
import { GPU_PROXY, REPOSITORY } from '../paths.js';

const PATIENCE = 300_000;

describe('checks of the simulated GPU, through the product', () => {
  let program: string;
  const source = readFileSync(path.join(REPOSITORY, 'test', 'checks', 'faults.cu'), 'utf8').split(
    '\n',
  );

  beforeAll(async () => {
    program = await compileProgram('checks', 'faults', ['-lineinfo', '-arch=compute_90']);
  }, PATIENCE);

  const at = (mark: string) =>
    `faults.cu:${source.findIndex((line) => line.includes(`mark: ${mark}`)) + 1}\n`;

  const run = (fault: string, checks: string) => {
    const args = [GPU_PROXY, 'run', '--backend', 'simulated', '--', program, fault];
    const env = { ...process.env, NVIDIA_VIRTUAL_SIMULATOR_CHECK: checks };
    return runChild(process.execPath, args, { cwd: REPOSITORY, env, seconds: 120 });
  };

  const cases = {
    race: [
      'cudaSuccess',
      ['data race on shared memory at 0x', at('race writes'), at('race reads')],
    ],
    outside: [
      'cudaErrorIllegalAddress',
      [
        'access outside of an allocation',
        'thread [255,0,0] of block [0,0,0] writes 4 bytes',
        at('outside'),
      ],
    ],
    freed: [
      'cudaErrorIllegalAddress',
      ['access outside of an allocation', 'reads 4 bytes', 'which are freed', at('outside')],
    ],
    barrier: ['cudaSuccess', ['divergent barrier 0', at('barrier odd'), at('barrier even')]],
  } as const;

  for (const [fault, [result, parts]] of Object.entries(cases)) {
    test(
      `name the fault: ${fault}`,
      async () => {
        const { stdout, stderr } = await run(fault, 'races,memory,barriers');
        expect(stdout).toMatch(new RegExp(`^(${result})$`, 'm'));
        for (const part of parts) expect(stderr).toContain(part);
      },
      PATIENCE,
    );
  }

  test(
    'report nothing for a correct program, and nothing if they are off',
    async () => {
      expect(await run('none', 'races,memory,barriers')).toMatchObject({
        stdout: 'cudaSuccess\n',
        stderr: '',
      });
      expect(await run('race', '')).toMatchObject({ stdout: 'cudaSuccess\n', stderr: '' });
    },
    PATIENCE,
  );

  test(
    'that do not exist are reported',
    async () => {
      const { stdout, stderr } = await run('none', 'race');
      expect(stderr).toContain(
        "there is no check 'race'; list races, memory, barriers, separated by commas",
      );
      expect(stdout).not.toContain('cudaSuccess');
    },
    PATIENCE,
  );
});
