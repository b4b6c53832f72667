import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { runCommand } from '@nvidia-virtual/toolchain/command';
import { gpuUsage } from './gpu-usage.js';
import { NAMESPACE } from './release.js';
import type { Scenario, Scene } from './scene.js';

export const support: Scenario = {
  name: 'support',
  beside: true,
  anywhere: true,
  about: 'kubectl gpu-usage doctor finds nothing wrong, and the archive has logs but no secret',
  async play(scene) {
    const { cluster, tally } = scene;
    const { status, output } = await gpuUsage(cluster, ['doctor', '-n', NAMESPACE]);
    tally.judge('the doctor finds no problem', status === 0 ? [] : [output]);
    await judgeArchive(scene);
  },
};

async function judgeArchive({ cluster, tally }: Scene): Promise<void> {
  const directory = mkdtempSync(path.join(tmpdir(), 'support-'));
  try {
    const file = path.join(directory, 'support.tar.gz');
    const written = await gpuUsage(cluster, ['bundle', file, '-n', NAMESPACE]);
    tally.judge('the archive is written', written.status === 0 ? [] : [written.output]);
    const { output: names } = await runCommand('tar', ['-tzf', file]);
    const logs = ['gpu-proxy', 'device-plugin', 'webhook', 'extender', 'redis'].filter(
      (container) => !names.includes(`/${container}.log`),
    );
    tally.judge(
      'it has the logs of all parts',
      logs.map((name) => `none of ${name}`),
    );
    const { output: text } = await runCommand('tar', ['-xzOf', file]);
    const secret = ['-n', NAMESPACE, 'get', 'secret', 'nvidia-virtual-redis', '-o'];
    const encoded = await cluster.kubectl(...secret, 'jsonpath={.data.password}');
    const password = Buffer.from(encoded, 'base64').toString();
    const leaks = [encoded, password].filter((form) => form !== '' && text.includes(form));
    tally.judge(
      'it has no password',
      leaks.length > 0 || password === '' ? ['the password of Redis is in it, or unknown'] : [],
    );
  } finally {
    rmSync(directory, { recursive: true });
  }
}
