import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { runCommand } from '@nvidia-virtual/toolchain/command';
import { kubernetesTool } from '@nvidia-virtual/toolchain/kubernetes-tools';
import { ControlPlane } from '../kubernetes/control-plane.js';
import { REPOSITORY } from '../paths.js';
import { CHART, helm, type KubernetesObject } from './chart.js';

const BUILDING_TOOLS = 1800_000;
const [NAMESPACE, RELEASE] = ['gpus', 'nvidia-virtual'];
/** The last commit before the work on the first release. */
const FIRST = '2ba512c';

let plane: ControlPlane;
let directory: string;
let old: string | undefined;

/** The API server decides which changes of objects it accepts; no pod runs. */
beforeAll(async () => {
  directory = mkdtempSync(path.join(tmpdir(), 'upgrade-'));
  old = await chartOf(FIRST);
  if (old === undefined) return;
  plane = await ControlPlane.start({ controllerManager: true });
  const replicas = ['--set', 'webhook.replicas=3'];
  await mustHelm('install', RELEASE, old, '--create-namespace', ...replicas);
}, BUILDING_TOOLS);

afterAll(async () => {
  await plane?.stop();
  rmSync(directory, { recursive: true });
});

/** Extracts the chart of a commit. Undefined: the clone is shallow and lacks the commit. */
async function chartOf(commit: string): Promise<string | undefined> {
  const known = await runCommand('git', ['cat-file', '-e', `${commit}^{commit}`]);
  if (known.status !== 0) {
    console.log(`skipped: this clone has no commit ${commit}; \`git fetch --unshallow\` brings it`);
    return undefined;
  }
  mkdirSync(path.join(directory, 'old'));
  // A file of the chart is a link to one of gpu-proxy.
  const extract = `git archive ${commit} charts gpu-proxy/grafana | tar -x -C '${directory}/old'`;
  const { status, output } = await runCommand('sh', ['-c', extract], { cwd: REPOSITORY });
  expect({ status, output }).toMatchObject({ status: 0 });
  return path.join(directory, 'old', 'charts', 'nvidia-virtual');
}

/** Without hooks, because there is no kubelet to run their pods. */
function onCluster(...args: readonly string[]): ReturnType<typeof helm> {
  const place = ['--namespace', NAMESPACE, '--kubeconfig', plane.adminKubeconfig];
  return helm(...args, ...place, '--no-hooks');
}

async function mustHelm(...args: readonly string[]): Promise<void> {
  expect(await onCluster(...args)).toMatchObject({ status: 0 });
}

async function get(...what: readonly string[]): Promise<KubernetesObject> {
  const args = ['--kubeconfig', plane.adminKubeconfig, '-n', NAMESPACE, 'get', ...what];
  return JSON.parse((await runCommand(kubernetesTool('kubectl'), [...args, '-o', 'json'])).output);
}

test(`an upgrade from ${FIRST} names a value that is gone, and works without it`, async () => {
  if (old === undefined) return;
  const password = (await get('secret', 'nvidia-virtual-redis')).metadata.uid;
  const keep = ['upgrade', RELEASE, CHART, '--reset-then-reuse-values'];
  const refused = await onCluster(...keep);
  expect(refused.status).toBe(1);
  expect(refused.output).toMatch(/webhook.*\n?.*replicas/);

  await mustHelm(...keep, '--set', 'webhook.replicas=null');
  const { spec } = await get('daemonset', 'nvidia-virtual-node');
  expect(spec.template.spec.containers[0].image).toMatch(/^localhost\/nvidia-virtual\/node:/);
  expect((await get('secret', 'nvidia-virtual-redis')).metadata.uid).toBe(password);
});

test('and a rollback brings the objects of that version back', async () => {
  if (old === undefined) return;
  await mustHelm('rollback', RELEASE, '1');
  expect((await get('deployment', 'nvidia-virtual-webhook')).spec.replicas).toBe(3);
  const { spec } = await get('daemonset', 'nvidia-virtual-node');
  expect(spec.template.spec.containers[0].image).toBe('nvidia-virtual/node:0.1.0');
});
