import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { RESOURCE } from '@nvidia-virtual/kube-common/names';
import { REPOSITORY } from '@nvidia-virtual/toolchain/repository';
import { parse, parseAllDocuments } from 'yaml';
import {
  containerOf,
  containersOf,
  environmentOf,
  type KubernetesObject,
  render,
} from './chart.js';

const VALUES = path.join(REPOSITORY, 'examples', 'clusters');
const PAGES = path.join(REPOSITORY, 'docs', 'clusters');
const KINDS = readdirSync(VALUES).map((name) => name.replace('.yaml', ''));
/** What Helm knows of a cluster of such a kind. */
const CLUSTERS: Readonly<Record<string, { version?: string; apis?: readonly string[] }>> = {
  aks: {},
  eks: { version: 'v1.36.3-eks-1a2b3c4' },
  gke: { version: 'v1.36.3-gke.1014001', apis: ['networking.gke.io/v1'] },
  k0s: { version: 'v1.36.3+k0s' },
  k3s: { version: 'v1.36.3+k3s1' },
  microk8s: {},
  openshift: { apis: ['security.openshift.io/v1'] },
};
const HOST_NETWORK = { webhook: { hostNetwork: true }, usageApi: { hostNetwork: true } };
const SERVING = ['webhook', 'usage-api'] as const;

function valuesOf(kind: string): KubernetesObject {
  return parse(readFileSync(path.join(VALUES, `${kind}.yaml`), 'utf8'));
}

test('every kind of cluster has values, a page and a line in the list of pages', () => {
  const list = readFileSync(path.join(PAGES, 'README.md'), 'utf8');
  expect(KINDS).toEqual(Object.keys(CLUSTERS));
  for (const kind of KINDS) {
    expect([kind, existsSync(path.join(PAGES, `${kind}.md`))]).toEqual([kind, true]);
    expect(list).toContain(`(${kind}.md)`);
  }
});

test.each(Object.entries(CLUSTERS))(
  'the chart renders for %s with its values',
  async (kind, of) => {
    const rendered = await render({ values: valuesOf(kind), ...of });
    expect(rendered.has('DaemonSet', 'nvidia-virtual-node')).toBe(true);
  },
);

test('a node of k0s and microk8s uses the directory of its kubelet', async () => {
  for (const kind of ['k0s', 'microk8s']) {
    const values = valuesOf(kind);
    const { pods } = await render({ values });
    const plugin = containerOf(pods.get('DaemonSet nvidia-virtual-node'), 'device-plugin');
    expect(environmentOf(plugin)['NVIDIA_VIRTUAL_KUBELET_ROOT']).toBe(values.node.kubeletRoot);
  }
});

describe('OpenShift', () => {
  const openShift = () => render({ values: valuesOf('openshift'), ...CLUSTERS['openshift'] });

  test('admits pods that see the host by its SCC, and no other accounts', async () => {
    const rendered = await openShift();
    const privileged = rendered
      .of('RoleBinding')
      .filter(({ roleRef }) => roleRef.name === 'system:openshift:scc:privileged');
    const seesHost = [...rendered.pods.values()].filter(({ hostPID }) => hostPID);
    expect(seesHost).toHaveLength(3);
    const accounts = privileged.flatMap(({ subjects }) => subjects.map(({ name }: never) => name));
    expect(accounts.toSorted()).toEqual(
      seesHost.map(({ serviceAccountName }) => serviceAccountName).toSorted(),
    );
    const elsewhere = await render();
    expect(elsewhere.text).not.toContain('openshift');
  });

  test('the binding of the clean-up lives as long as its account', async () => {
    const rendered = await openShift();
    const { metadata } = rendered.find('RoleBinding', 'nvidia-virtual-cleaning-scc');
    const account = rendered.find('ServiceAccount', 'nvidia-virtual-cleaning');
    expect(metadata.annotations).toEqual(account.metadata.annotations);
  });

  test('gives all other pods users of the namespace', async () => {
    const { pods } = await openShift();
    for (const [name, { hostPID, securityContext }] of pods)
      if (!hostPID)
        expect([name, securityContext]).toEqual([
          name,
          { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
        ]);
  });
});

describe('in the network of the node', () => {
  test('webhook and usage API listen at ports of their own', async () => {
    const { pods } = await render({ values: HOST_NETWORK });
    const ports = SERVING.flatMap((name) => {
      const pod = pods.get(`Deployment nvidia-virtual-${name}`);
      expect([pod.hostNetwork, pod.dnsPolicy]).toEqual([true, 'ClusterFirstWithHostNet']);
      const container = containerOf(pod, name);
      const { NVIDIA_VIRTUAL_LISTEN: listen, NVIDIA_VIRTUAL_HTTP: http } = environmentOf(container);
      const named = container.ports.map((port: KubernetesObject) => `:${port.containerPort}`);
      expect(named).toEqual([listen, http]);
      return named;
    });
    expect(new Set(ports).size).toBe(4);
  });

  test('an old pod ends before its successor needs the port', async () => {
    const rendered = await render({ values: HOST_NETWORK });
    for (const name of SERVING)
      expect(rendered.find('Deployment', `nvidia-virtual-${name}`).spec.strategy).toEqual({
        rollingUpdate: { maxSurge: 0, maxUnavailable: 1 },
      });
  });

  test('no other pod is, and by default none', async () => {
    const inIt = ({ pods }: Awaited<ReturnType<typeof render>>) =>
      [...pods].filter(([, { hostNetwork }]) => hostNetwork).map(([name]) => name);
    expect(inIt(await render({ values: HOST_NETWORK })).sort()).toEqual([
      'Deployment nvidia-virtual-usage-api',
      'Deployment nvidia-virtual-webhook',
    ]);
    expect(inIt(await render())).toEqual([]);
  });

  test('equal ports are refused', async () => {
    const { webhook, usageApi } = HOST_NETWORK;
    const values = { webhook: { ...webhook, port: 9000 }, usageApi: { ...usageApi, port: 9000 } };
    await expect(render({ values })).rejects.toThrow(
      'webhook.port and usageApi.port are both 9000',
    );
  });
});

test('every container of a node has the SELinux type that may use the host', async () => {
  const { pods } = await render();
  for (const name of ['node', 'cleaning']) {
    const pod = pods.get(`DaemonSet nvidia-virtual-${name}`);
    const root = containersOf(pod).filter(({ securityContext }) => securityContext.runAsUser === 0);
    expect(root.map(({ securityContext }) => securityContext.seLinuxOptions)).toEqual(
      root.map(() => ({ type: 'spc_t' })),
    );
  }
});

test("the label of Karpenter's nodes is the one that selects our nodes", async () => {
  const [overlay, pool] = parseAllDocuments(
    readFileSync(path.join(VALUES, '..', 'karpenter.yaml'), 'utf8'),
  ).map((document) => document.toJS() as KubernetesObject);
  expect(Object.keys(overlay.spec.capacity)).toEqual([RESOURCE]);
  const { labels } = pool.spec.template.metadata;
  const { affinity } = (await render()).pods.get('DaemonSet nvidia-virtual-node');
  const terms: KubernetesObject[] =
    affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms;
  const matches = ({ key, operator, values = [] }: KubernetesObject) => {
    if (operator === 'Exists') return key in labels;
    return values.includes(labels[key]) === (operator === 'In');
  };
  expect(terms.some(({ matchExpressions }) => matchExpressions.every(matches))).toBe(true);
});
