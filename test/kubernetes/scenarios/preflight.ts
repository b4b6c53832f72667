import { existsSync } from 'node:fs';
import { tryInstall, uninstall } from './product.js';
import { NAMESPACE } from './release.js';
import type { NodeScenario } from './scene.js';
import { judgeWhatIsLeft } from './uninstallation.js';

const DRIVER = '/proc/driver/nvidia/version';

export const preflight: NodeScenario = {
  name: 'preflight',
  about: 'helm install on a node without a driver ends early with what the node lacks',
  installs: true,
  async play(scene) {
    const { cluster, tally } = scene;
    if (existsSync(DRIVER)) return tally.skip('a node without a driver', 'this machine has one');
    const { status, output } = await tryInstall(cluster, { 'node.backend': 'real' });
    const sentence = `Node ${cluster.nodeName} has no NVIDIA driver`;
    const early = status !== 0 && output.includes('failed pre-install');
    tally.judge('helm install fails before it makes anything', early ? [] : [output]);
    tally.judge('and prints what the node lacks', output.includes(sentence) ? [] : [output]);
    const pods = await cluster.kubectl('-n', NAMESPACE, 'get', 'daemonsets', '-o', 'name');
    tally.judge('and no pod stays on the node', pods.trim() === '' ? [] : [pods]);
    await uninstall(cluster);
    await judgeWhatIsLeft(scene);
  },
};
