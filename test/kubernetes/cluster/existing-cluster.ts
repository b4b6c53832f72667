import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { runCommand } from '@nvidia-virtual/toolchain/command';
import { NAMESPACE, RELEASE } from '../scenarios/release.js';
import { Cluster } from './cluster.js';

const LABEL = 'nvidia-virtual/node=true';

/**
 * Passes a running cluster to the body, then removes what the tests created there. The label of one
 * node is the consent to use the cluster.
 * @param kubeconfig path of a file, as in KUBECONFIG
 * @param values of the chart, for example `node.backend: real`
 * @throws Error if the cluster is not suitable for the tests
 */
export async function withExistingCluster(
  kubeconfig: string,
  values: Readonly<Record<string, string>>,
  body: (cluster: Cluster) => Promise<void>,
): Promise<void> {
  const [kubectl, helm] = [await onPath('kubectl', '--client'), await onPath('helm')];
  const directory = mkdtempSync(path.join(tmpdir(), 'nvidia-virtual-test-'));
  try {
    const options = { kubeconfig, directory, kubectl, helm, values };
    const nodeName = await findNode(new Cluster({ ...options, nodeName: '' }));
    const cluster = new Cluster({ ...options, nodeName });
    await refuseInstalled(cluster);
    try {
      await body(cluster);
    } finally {
      await removeProduct(cluster);
    }
  } finally {
    rmSync(directory, { recursive: true });
  }
}

async function onPath(program: string, ...args: string[]): Promise<string> {
  const answers = await runCommand(program, ['version', ...args]).then(
    ({ status }) => status === 0,
    () => false,
  );
  if (!answers) throw new Error(`${program} is not in PATH: install it, and try again.`);
  return program;
}

async function findNode(cluster: Cluster): Promise<string> {
  const names = (await cluster.kubectl('get', 'nodes', '-l', LABEL, '-o', 'name')).split('\n');
  const [name, ...others] = names.flatMap((each) => /^node\/(.+)$/.exec(each)?.[1] ?? []);
  if (name === undefined || others.length > 0)
    throw new Error(
      `The tests use exactly one node, and ` +
        `${name === undefined ? 'none' : others.length + 1} of this ` +
        `cluster has the label ${LABEL}. Set it: kubectl label node NAME ${LABEL}`,
    );
  return name;
}

async function refuseInstalled(cluster: Cluster): Promise<void> {
  const found = await cluster.kubectl('get', 'namespace', NAMESPACE, '--ignore-not-found');
  if (found !== '')
    throw new Error(
      `The cluster has a namespace ${NAMESPACE}: uninstall the product and delete the namespace. ` +
        'The tests install the product themselves, and remove it.',
    );
}

/** Also after failed scenarios, nothing may stay. */
async function removeProduct(cluster: Cluster): Promise<void> {
  await cluster.tryHelm(['uninstall', RELEASE, '-n', NAMESPACE, '--no-hooks']);
  await cluster.tryKubectl(['delete', 'namespace', NAMESPACE, '--ignore-not-found']);
}
