import { expect, test } from '@jest/globals';
import { runChild } from '../child.js';
import { compileProgram } from '../cuda-program.js';
import { GPU_PROXY, INTERPOSER, REPOSITORY } from '../paths.js';

test("a module is unloaded when the call returns an earlier call's error", async () => {
  const program = await compileProgram('checks', 'unload_late_error', ['-L', INTERPOSER, '-lcuda']);
  const args = [GPU_PROXY, 'run', '--backend', 'simulated', '--', program];
  const options = { cwd: REPOSITORY, env: process.env, seconds: 120 };
  const outcome = await runChild(process.execPath, args, options);
  expect(outcome).toMatchObject({ status: 0, stdout: 'as expected\n' });
}, 300_000);
