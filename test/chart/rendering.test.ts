import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import {
  CHECK_OPTIONS,
  REMOVE_OPTIONS,
  SERVE_OPTIONS,
} from '@nvidia-virtual/device-plugin/options';
import { NODE_OPTIONS } from '@nvidia-virtual/gpu-proxy/configuration/schema';
import { BINDING_TIMEOUT } from '@nvidia-virtual/scheduler-ext/extender/binder';
import { EXTENDER_OPTIONS, WEBHOOK_OPTIONS } from '@nvidia-virtual/scheduler-ext/options';
import { schedulerConfiguration } from '@nvidia-virtual/scheduler-ext/testing/scheduler-configuration';
import { webhookConfigurations } from '@nvidia-virtual/scheduler-ext/testing/webhook-configurations';
import { writersOf } from '@nvidia-virtual/scheduler-ext/webhook/webhook-service';
import { optionsOf } from '@nvidia-virtual/service/configuration/option';
import { REPOSITORY } from '@nvidia-virtual/toolchain/repository';
import { OPTIONS as USAGE_OPTIONS } from '@nvidia-virtual/usage-api/options';
import { parse } from 'yaml';
import {
  CHART,
  containerOf,
  containersOf,
  environmentOf,
  helm,
  type KubernetesObject,
  type Rendered,
  render,
} from './chart.js';

const BUILDING_HELM = 900_000;
const GKE = { apis: ['networking.gke.io/v1'] };
const OPERATOR = { apis: ['monitoring.coreos.com/v1/ServiceMonitor'] };
const PROMETHEUS = {
  namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } },
};
const VERSIONS = ['v1.30.0', 'v1.33.5-gke.1014001', 'v1.36.3+k3s1'];

let chart: Rendered;
beforeAll(async () => {
  chart = await render();
}, BUILDING_HELM);

/** All images of pods, sorted, each once. */
function imagesOf({ pods }: Rendered): string[] {
  const containers = [...pods.values()].flatMap((pod) => containersOf(pod) as { image: string }[]);
  return [...new Set(containers.map(({ image }) => image))].sort();
}

describe('every pod', () => {
  test('has its own account, and no more rights in the kernel than it needs', () => {
    for (const [name, pod] of chart.pods) {
      for (const container of containersOf(pod)) {
        const { securityContext } = container;
        expect([
          name,
          container.name,
          securityContext.privileged,
          securityContext.readOnlyRootFilesystem,
        ]).toEqual([name, container.name, undefined, true]);
        expect([name, securityContext.capabilities.drop]).toEqual([name, ['ALL']]);
      }
      expect([name, pod.hostNetwork ?? false]).toEqual([name, false]);
    }
  });

  test('requests processor and memory, which a quota or policy may require', () => {
    for (const [name, pod] of chart.pods)
      for (const container of containersOf(pod))
        expect([name, container.name, container.resources?.requests]).toEqual([
          name,
          container.name,
          { cpu: expect.any(String), memory: expect.any(String) },
        ]);
  });

  test('that is not on every node runs as an unprivileged user', () => {
    const control = [...chart.pods].filter(([, pod]) => !pod.hostPID);
    expect(control.length).toBeGreaterThanOrEqual(6);
    for (const [name, pod] of control)
      expect([name, pod.securityContext]).toEqual([
        name,
        expect.objectContaining({ runAsNonRoot: true, runAsUser: 65532 }),
      ]);
  });

  test('runs on nodes that its programs support and that the values select', async () => {
    const platform = { 'kubernetes.io/arch': 'amd64', 'kubernetes.io/os': 'linux' };
    const { pods } = await render({
      values: {
        node: { nodeSelector: { pool: 'gpus' } },
        control: { nodeSelector: { pool: 'system' } },
      },
    });
    expect(pods.size).toBe(chart.pods.size);
    for (const [name, pod] of chart.pods) {
      expect([name, pod.nodeSelector]).toEqual([name, platform]);
      const pool = pod.hostPID ? 'gpus' : 'system';
      const chosen = name === 'Pod nvidia-virtual-test-slot' ? platform : { ...platform, pool };
      expect([name, pods.get(name).nodeSelector]).toEqual([name, chosen]);
    }
  });

  test.each([
    ['the default', undefined, 6],
    ['no', null, 1],
    ['an own', { nodeAffinity: null, podAntiAffinity: {} }, 1],
  ])('leaves a node whose driver is replaced, with %s affinity', async (_, affinity, count) => {
    const { pods } = await render({ values: { node: { affinity } } });
    const { nodeAffinity } = pods.get('DaemonSet nvidia-virtual-node').affinity;
    const terms: KubernetesObject[] =
      nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms;
    expect(terms).toHaveLength(count);
    for (const { matchExpressions } of terms)
      expect(matchExpressions).toContainEqual({
        key: 'nvidia.com/gpu-driver-upgrade-state',
        operator: 'NotIn',
        values: ['pod-restart-required', 'validation-required', 'upgrade-failed'],
      });
  });

  test('pulls images of others from where they publish, ours from images.registry', async () => {
    const images = { registry: 'mirror.local/gpu/', pullSecrets: [{ name: 'mirror' }] };
    const rendered = await render({ values: { images } });
    for (const [name, pod] of rendered.pods)
      expect([name, pod.imagePullSecrets]).toEqual([name, [{ name: 'mirror' }]]);
    expect(imagesOf(rendered)).toEqual([
      expect.stringMatching(/^docker\.io\/valkey\/valkey:8\.\d+\.\d+$/),
      expect.stringMatching(/^mirror\.local\/gpu\/nvidia-virtual\/control:\d+\.\d+\.\d+/),
      expect.stringMatching(/^mirror\.local\/gpu\/nvidia-virtual\/node:\d+\.\d+\.\d+/),
      'registry.k8s.io/kube-scheduler:v1.36.3',
    ]);
  });

  test('pulls every image from one registry if three values name it', async () => {
    const images = {
      registry: 'mirror.local',
      tag: 'v9',
      kubeScheduler: 'mirror.local/kube-scheduler',
      redis: 'mirror.local/valkey@sha256:0123',
    };
    expect(imagesOf(await render({ values: { images } }))).toEqual([
      'mirror.local/kube-scheduler:v1.36.3',
      'mirror.local/nvidia-virtual/control:v9',
      'mirror.local/nvidia-virtual/node:v9',
      'mirror.local/valkey@sha256:0123',
    ]);
  });
});

describe('processes', () => {
  const known = (options: Parameters<typeof optionsOf>[0]) =>
    new Set(optionsOf(options).map(({ variable }) => variable));
  const foreign = new Set([
    'NVIDIA_VISIBLE_DEVICES',
    'NVIDIA_VIRTUAL_SIMULATED_GPUS',
    'NVIDIA_VIRTUAL_SIMULATED_MEMORY',
  ]);
  const unknown = (container: KubernetesObject, options: Parameters<typeof optionsOf>[0]) =>
    Object.keys(environmentOf(container)).filter(
      (name) => !known(options).has(name) && !foreign.has(name),
    );

  test('get only variables that they read', () => {
    const node = chart.pods.get('DaemonSet nvidia-virtual-node');
    expect(unknown(containerOf(node, 'gpu-proxy'), NODE_OPTIONS)).toEqual([]);
    expect(unknown(containerOf(node, 'device-plugin'), SERVE_OPTIONS)).toEqual([]);
    const cleaning = chart.pods.get('DaemonSet nvidia-virtual-cleaning');
    expect(unknown(containerOf(cleaning, 'clean'), REMOVE_OPTIONS)).toEqual([]);
    const preflight = chart.pods.get('DaemonSet nvidia-virtual-preflight');
    expect(unknown(containerOf(preflight, 'check'), CHECK_OPTIONS)).toEqual([]);
    expect(
      unknown(
        containerOf(chart.pods.get('Deployment nvidia-virtual-usage-api'), 'usage-api'),
        USAGE_OPTIONS,
      ),
    ).toEqual([]);
    expect(
      unknown(
        containerOf(chart.pods.get('Deployment nvidia-virtual-scheduler'), 'extender'),
        EXTENDER_OPTIONS,
      ),
    ).toEqual([]);
    expect(
      unknown(
        containerOf(chart.pods.get('Deployment nvidia-virtual-webhook'), 'webhook'),
        WEBHOOK_OPTIONS,
      ),
    ).toEqual([]);
  });

  test('get every value of the node settings as it is meant', async () => {
    const node = {
      gpus: [0, 'GPU-1'],
      gpuModes: { 0: 'concurrent' },
      backend: 'simulated',
      slotsPerGpu: 4,
      slotMemory: '2GiB',
      warmWorkers: 2,
      hostMemory: 0,
      oversubscription: 1.5,
      managedMemory: 'moves',
      allow: ['nvidia-runtime'],
    };
    const { pods } = await render({ values: { node, logLevel: 'debug' } });
    const pod = pods.get('DaemonSet nvidia-virtual-node');
    const environment = environmentOf(containerOf(pod, 'gpu-proxy'));
    const parsed = Object.fromEntries(
      optionsOf(NODE_OPTIONS).flatMap(({ variable, option: { kind } }) => {
        const text = variable && environment[variable];
        if (typeof text !== 'string') return [];
        return [
          [
            variable,
            kind.combine(
              (kind.shape === 'one' ? [text] : text.split(',')).map((one) => kind.entry(one)),
            ),
          ],
        ];
      }),
    );
    // Undefined: the option does not accept the value.
    expect(Object.entries(parsed).filter(([, value]) => value === undefined)).toEqual([]);
    expect(environment).toMatchObject({
      NVIDIA_VIRTUAL_BACKEND: 'simulated',
      NVIDIA_VIRTUAL_GPU: '0,GPU-1',
      NVIDIA_VIRTUAL_GPU_MODE: '0=concurrent',
      NVIDIA_VIRTUAL_SLOTS_PER_GPU: '4',
      NVIDIA_VIRTUAL_SLOT_MEMORY: '2GiB',
      NVIDIA_VIRTUAL_HOST_MEMORY: '0',
      NVIDIA_VIRTUAL_OVERSUBSCRIPTION: '1.5',
      NVIDIA_VIRTUAL_MANAGED_MEMORY: 'moves',
      NVIDIA_VIRTUAL_OVERRUN_LIMIT: '60s',
      NVIDIA_VIRTUAL_GUARANTEED_SHARE: '50',
      NVIDIA_VIRTUAL_LOG_LEVEL: 'debug',
    });
    expect(environmentOf(containerOf(pod, 'device-plugin'))).toMatchObject({
      NVIDIA_VIRTUAL_ALLOW: 'nvidia-runtime',
    });
  });
});

test('the size of a slot reaches all that count slots, and nobody else', async () => {
  const slots = (rendered: typeof chart) =>
    ['DaemonSet nvidia-virtual-node', 'Deployment nvidia-virtual-scheduler']
      .concat('Deployment nvidia-virtual-webhook')
      .map((workload, index) => {
        const name = ['gpu-proxy', 'extender', 'webhook'][index] as string;
        const environment = environmentOf(containerOf(rendered.pods.get(workload), name));
        return ['NVIDIA_VIRTUAL_SLOT_MEMORY', 'NVIDIA_VIRTUAL_SLOT_CORES'].map(
          (variable) => environment[variable],
        );
      });
  const nothing = [undefined, undefined];
  expect(slots(chart)).toEqual([nothing, nothing, nothing]);
  expect(slots(await render({ values: { node: { slotMemory: '2GiB', slotCores: 5 } } }))).toEqual([
    ['2GiB', undefined],
    [undefined, '5'],
    ['2GiB', '5'],
  ]);
});

describe('the node', () => {
  test('uses the configured directory of the kubelet', async () => {
    const { pods } = await render({ values: { node: { kubeletRoot: '/var/lib/k0s/kubelet' } } });
    const pod = pods.get('DaemonSet nvidia-virtual-node');
    const plugin = containerOf(pod, 'device-plugin');
    expect(environmentOf(plugin)).toMatchObject({
      NVIDIA_VIRTUAL_KUBELET_ROOT: '/var/lib/k0s/kubelet',
    });
    for (const name of ['device-plugins', 'pod-resources']) {
      const volume = pod.volumes.find((one: KubernetesObject) => one.name === name);
      expect(volume.hostPath.path).toBe(`/var/lib/k0s/kubelet/${name}`);
      expect(plugin.volumeMounts).toContainEqual(
        expect.objectContaining({ name, mountPath: volume.hostPath.path }),
      );
    }
  });

  test('keeps all its files in another directory if configured', async () => {
    const directory = '/home/kubernetes/bin/nvidia-virtual';
    const { pods, text } = await render({ values: { node: { directory } } });
    expect(text).not.toContain('/var/lib/nvidia-virtual');
    const pod = pods.get('DaemonSet nvidia-virtual-node');
    const state = { name: 'state', mountPath: directory };
    for (const container of [...pod.initContainers, ...pod.containers])
      expect(container.volumeMounts).toContainEqual(state);
    expect(pod.volumes).toContainEqual({
      name: 'state',
      hostPath: { path: directory, type: 'DirectoryOrCreate' },
    });
    const versions = { NVIDIA_VIRTUAL_VERSIONS: `${directory}/versions` };
    expect(environmentOf(containerOf(pod, 'install'))).toMatchObject(versions);
    expect(environmentOf(containerOf(pod, 'device-plugin'))).toMatchObject({
      NVIDIA_VIRTUAL_STATE: `${directory}/state`,
      ...versions,
    });
    expect(environmentOf(containerOf(pod, 'gpu-proxy'))).toMatchObject({
      NVIDIA_VIRTUAL_STATE: `${directory}/state`,
      NVIDIA_VIRTUAL_KUBERNETES_VERSIONS: `${directory}/versions`,
    });
    const cleaning = pods.get('DaemonSet nvidia-virtual-cleaning');
    const clean = containerOf(cleaning, 'clean');
    expect(environmentOf(clean)).toMatchObject({ NVIDIA_VIRTUAL_DIRECTORY: directory });
    expect(clean.volumeMounts).toContainEqual({
      name: 'parent',
      mountPath: '/host/home/kubernetes/bin',
    });
    expect(cleaning.volumes).toContainEqual({
      name: 'parent',
      hostPath: { path: '/home/kubernetes/bin', type: 'Directory' },
    });
  });

  test("uses the configured directory of NVIDIA's driver", async () => {
    const rootOf = ({ pods }: Rendered) =>
      environmentOf(containerOf(pods.get('DaemonSet nvidia-virtual-node'), 'gpu-proxy'))[
        'NVIDIA_VIRTUAL_KUBERNETES_DRIVER_ROOT'
      ];
    expect(rootOf(chart)).toBe('/');
    expect(rootOf(await render({ values: { node: { driverRoot: '/run/nvidia/driver' } } }))).toBe(
      '/run/nvidia/driver',
    );
  });

  test('mounts its directory under the same path as on the host', () => {
    const pod = chart.pods.get('DaemonSet nvidia-virtual-node');
    for (const { volumeMounts } of [...pod.initContainers, ...pod.containers])
      expect(volumeMounts).toContainEqual({ name: 'state', mountPath: '/var/lib/nvidia-virtual' });
  });
});

describe('profiles of nodes', () => {
  const profiles = { small: { slotsPerGpu: 4, gpus: [0] }, large: { driverRoot: '/opt/driver' } };
  const termsOf = ({ affinity }: KubernetesObject): KubernetesObject[][] =>
    affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms.map(
      ({ matchExpressions }: KubernetesObject) =>
        matchExpressions.filter(({ key }: KubernetesObject) => key === 'nvidia-virtual/profile'),
    );
  const settingsOf = (pod: KubernetesObject) => {
    const environment = environmentOf(containerOf(pod, 'gpu-proxy'));
    return ['SLOTS_PER_GPU', 'GPU', 'KUBERNETES_DRIVER_ROOT'].map(
      (name) => environment[`NVIDIA_VIRTUAL_${name}`],
    );
  };

  test('each node runs the pod of one profile, or that of all other nodes', async () => {
    const { pods } = await render({ values: { node: { profiles, slotsPerGpu: 5 } } });
    const [others, small, large] = ['', '-small', '-large'].map((name) =>
      pods.get(`DaemonSet nvidia-virtual-node${name}`),
    );
    const key = 'nvidia-virtual/profile';
    const wanted: [KubernetesObject, object, (string | undefined)[]][] = [
      [others, { key, operator: 'NotIn', values: ['large', 'small'] }, ['5', undefined, '/']],
      [small, { key, operator: 'In', values: ['small'] }, ['4', '0', '/']],
      [large, { key, operator: 'In', values: ['large'] }, ['5', undefined, '/opt/driver']],
    ];
    for (const [pod, condition, settings] of wanted) {
      const terms = termsOf(pod);
      expect(terms.length).toBeGreaterThan(1);
      expect(terms).toEqual(terms.map(() => [condition]));
      expect(settingsOf(pod)).toEqual(settings);
      expect(pod.serviceAccountName).toBe('nvidia-virtual-node');
    }
  });

  test('the pods of a profile are selected by their own DaemonSet', async () => {
    const rendered = await render({ values: { node: { profiles } } });
    const { selector, template } = rendered.find('DaemonSet', 'nvidia-virtual-node-small').spec;
    expect(selector.matchLabels['nvidia-virtual/profile']).toBe('small');
    expect(template.metadata.labels).toMatchObject(selector.matchLabels);
  });

  test('without profiles, no node is left out', () => {
    const pod = chart.pods.get('DaemonSet nvidia-virtual-node');
    expect(termsOf(pod).flat()).toEqual([]);
  });
});

describe('the scheduler', () => {
  test.each(VERSIONS)(
    "has the version of cluster %s, without the vendor's suffix",
    async (version) => {
      const { pods } = await render({ version });
      const plain = /^v\d+\.\d+\.\d+/.exec(version)?.[0];
      expect(
        containerOf(pods.get('Deployment nvidia-virtual-scheduler'), 'kube-scheduler').image,
      ).toBe(`registry.k8s.io/kube-scheduler:${plain}`);
    },
  );

  test.each([
    [
      { kubeScheduler: 'upstream.example/kube-scheduler' },
      'upstream.example/kube-scheduler:v1.33.5',
    ],
    [
      { kubeScheduler: 'upstream.example:5000/kube-scheduler:v1.33.0' },
      'upstream.example:5000/kube-scheduler:v1.33.0',
    ],
    [{ kubeSchedulerTag: 'v1.32.9' }, 'registry.k8s.io/kube-scheduler:v1.32.9'],
  ])('uses the configured image: %j', async (names, image) => {
    const { pods } = await render({
      version: 'v1.33.5-gke.1014001',
      values: { images: { registry: 'mirror.local', ...names } },
    });
    expect(
      containerOf(pods.get('Deployment nvidia-virtual-scheduler'), 'kube-scheduler').image,
    ).toBe(image);
  });

  test('has feature gates if they are set', async () => {
    const flagsOf = (pods: typeof chart.pods) =>
      containerOf(pods.get('Deployment nvidia-virtual-scheduler'), 'kube-scheduler').command;
    const featureGates = { GenericWorkload: true, GangScheduling: false };
    const { pods } = await render({ values: { scheduler: { featureGates } } });
    expect(flagsOf(pods)).toContain('--feature-gates=GangScheduling=false,GenericWorkload=true');
    expect(flagsOf(chart.pods).join(' ')).not.toContain('feature-gates');
  });

  test('has health probes at endpoints of every supported version', () => {
    const scheduler = containerOf(
      chart.pods.get('Deployment nvidia-virtual-scheduler'),
      'kube-scheduler',
    );
    for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe'])
      expect([probe, scheduler[probe].httpGet]).toEqual([
        probe,
        { path: '/healthz', port: 'kube-metrics', scheme: 'HTTPS' },
      ]);
  });

  test('gets another configuration with another strategy, and restarts', async () => {
    const spread = await render({ values: { scheduler: { strategy: 'spread' } } });
    const annotations = [chart, spread].map(
      (one) =>
        one.find('Deployment', 'nvidia-virtual-scheduler').spec.template.metadata.annotations[
          'nvidia-virtual/configuration'
        ],
    );
    expect(annotations[0]).not.toBe(annotations[1]);
    expect(spread.text).toContain('type: LeastAllocated');
    expect(
      environmentOf(
        containerOf(spread.pods.get('Deployment nvidia-virtual-scheduler'), 'extender'),
      ),
    ).toMatchObject({
      NVIDIA_VIRTUAL_STRATEGY: 'spread',
    });
  });
});

test.each(['binpack', 'spread'] as const)(
  'kube-scheduler sends the extender the requests that it serves, with %s',
  async (strategy) => {
    const rendered = await render({ values: { scheduler: { strategy } } });
    const { data } = rendered.find('ConfigMap', 'nvidia-virtual-scheduler');
    const { leaderElection, ...configuration } = parse(data['configuration.yaml']);
    expect(configuration).toEqual(schedulerConfiguration('http://127.0.0.1:8888', strategy));
    expect(leaderElection).toMatchObject({ leaderElect: true });
  },
);

test('the binding timeout is between the end of one lease and the start of the next leader', () => {
  const { data } = chart.find('ConfigMap', 'nvidia-virtual-scheduler');
  const { leaderElection } = parse(data['configuration.yaml']);
  const seconds = (name: string) => Number(/^(\d+)s$/.exec(leaderElection[name])?.[1]);
  expect(BINDING_TIMEOUT).toBeLessThan(
    1000 * (seconds('leaseDuration') - seconds('renewDeadline') - seconds('retryPeriod')),
  );
});

test.each([[[]], [['hami']], [['hami', 'nvidia']]] as const)(
  'the API server sends the webhook the requests that it serves: %j',
  async (dialects) => {
    const [release, namespace] = ['gpu-nvidia-virtual', 'gpus'];
    const values = { webhook: { translate: dialects } };
    const rendered = await render({ release, namespace, values });
    const service = (path: string) => ({
      service: { name: `${release}-webhook`, namespace, path },
    });
    for (const wanted of webhookConfigurations({
      name: release,
      writers: writersOf({ namespace, release }),
      dialects,
      client: service,
    }) as KubernetesObject[]) {
      const { webhooks } = rendered.find(wanted.kind, release);
      expect(webhooks).toEqual(wanted.webhooks);
    }
  },
);

describe('Redis', () => {
  const url = 'rediss://redis.example:6380';

  test('of the chart has an empty Secret that only its own pod may fill', () => {
    expect(chart.find('Secret', 'nvidia-virtual-redis').data).toBeUndefined();
    expect(chart.find('Role', 'nvidia-virtual-redis').rules).toEqual([
      {
        apiGroups: [''],
        resources: ['secrets'],
        resourceNames: ['nvidia-virtual-redis'],
        verbs: ['get', 'update'],
      },
    ]);
    expect(chart.pods.get('StatefulSet nvidia-virtual-redis').automountServiceAccountToken).toBe(
      false,
    );
  });

  test('that is external is used with its Secret and its CA', async () => {
    const tls = { existingSecret: 'redis-ca', clientCertificate: true };
    const { pods, of, objects } = await render({
      values: {
        redis: {
          enabled: false,
          url,
          username: 'gpu',
          existingSecret: 'redis',
          passwordKey: 'pw',
          tls,
        },
      },
    });
    expect(objects.filter(({ kind }) => kind === 'StatefulSet')).toEqual([]);
    expect(of).toBeDefined();
    for (const [maker, name] of [
      ['DaemonSet nvidia-virtual-node', 'gpu-proxy'],
      ['Deployment nvidia-virtual-usage-api', 'usage-api'],
    ] as const) {
      expect(environmentOf(containerOf(pods.get(maker), name))).toMatchObject({
        NVIDIA_VIRTUAL_LEDGER_URL: url,
        NVIDIA_VIRTUAL_LEDGER_USERNAME: 'gpu',
        NVIDIA_VIRTUAL_LEDGER_PASSWORD_FILE: '/etc/nvidia-virtual/redis/pw',
        NVIDIA_VIRTUAL_LEDGER_TLS_CA: '/etc/nvidia-virtual/redis-tls/ca.crt',
        NVIDIA_VIRTUAL_LEDGER_TLS_CERT: '/etc/nvidia-virtual/redis-tls/tls.crt',
      });
    }
  });

  test('the usage API waits for its password, a node does not', () => {
    const volume = (pods: string) =>
      chart.pods.get(pods).volumes.find(({ name }: KubernetesObject) => name === 'redis-password');
    expect(volume('DaemonSet nvidia-virtual-node').secret.optional).toBe(true);
    // Without items, the kubelet mounts a Secret that has no password yet.
    expect(volume('Deployment nvidia-virtual-usage-api').secret).toMatchObject({
      optional: false,
      items: [{ key: 'password', path: 'password' }],
    });
  });
});

describe('checks', () => {
  const commandOf = ({ pods }: Rendered, name: string): string[] =>
    pods.get(`Job nvidia-virtual-${name}`).containers[0].command;

  test('have the same timeout as Helm, without the time to pull their image', () => {
    const jobs = chart.of('Job');
    expect(jobs.map(({ metadata }) => metadata.name).toSorted()).toEqual(
      ['finish-uninstall', 'install-check', 'preflight-check', 'uninstall-check'].map(
        (name) => `nvidia-virtual-${name}`,
      ),
    );
    for (const { spec } of jobs)
      expect([spec.activeDeadlineSeconds, spec.template.spec.activeDeadlineSeconds]).toEqual([
        undefined,
        undefined,
      ]);
  });

  test('before an installation run on the nodes that are to serve GPUs, with their access', () => {
    const [preflight, node] = ['preflight', 'node'].map((name) =>
      chart.pods.get(`DaemonSet nvidia-virtual-${name}`),
    );
    const placement = ({ affinity, nodeSelector, tolerations, hostPID }: KubernetesObject) => ({
      affinity,
      nodeSelector,
      tolerations,
      hostPID,
    });
    expect(placement(preflight)).toEqual(placement(node));
    const mounted = containerOf(preflight, 'check').volumeMounts;
    expect(mounted.length).toBeGreaterThan(0);
    for (const { readOnly } of mounted) expect(readOnly).toBe(true);
    expect(preflight.automountServiceAccountToken).toBe(false);
    const { annotations } = chart.find('DaemonSet', 'nvidia-virtual-preflight').metadata;
    expect(annotations['helm.sh/hook']).toBe('pre-install');
  });

  test('before an installation can be left out', async () => {
    const rendered = await render({ values: { preflight: { enabled: false } } });
    expect(rendered.pods.has('DaemonSet nvidia-virtual-preflight')).toBe(false);
    expect(rendered.has('Job', 'nvidia-virtual-preflight-check')).toBe(false);
  });

  test('exist before an uninstallation also if pods may continue', async () => {
    expect(commandOf(chart, 'uninstall-check')).not.toContain('--with-running-pods');
    const forced = await render({ values: { uninstall: { withRunningPods: true } } });
    expect(commandOf(forced, 'uninstall-check')).toContain('--with-running-pods');
    const policy = 'helm.sh/hook-delete-policy';
    expect(forced.find('Job', 'nvidia-virtual-uninstall-check').metadata.annotations[policy]).toBe(
      'before-hook-creation,hook-succeeded',
    );
  });

  test.each([true, false])(
    'after an uninstallation remove every hook that stays otherwise; nodes are cleaned: %s',
    async (cleanNodes) => {
      const rendered = await render({ values: { uninstall: { cleanNodes } } });
      const flags = commandOf(rendered, 'finish-uninstall');
      const tests = rendered.of('Pod').map(({ metadata }) => `--pod=${metadata.name}`);
      expect(tests).toHaveLength(2);
      expect(flags).toEqual(
        expect.arrayContaining([
          ...tests,
          '--job=nvidia-virtual-install-check',
          '--job=nvidia-virtual-preflight-check',
          '--preflight=nvidia-virtual-preflight',
          '--lease=nvidia-virtual-scheduler',
        ]),
      );
      expect([
        flags.includes('--daemon-set=nvidia-virtual-cleaning'),
        rendered.has('DaemonSet', 'nvidia-virtual-cleaning'),
      ]).toEqual([cleanNodes, cleanNodes]);
    },
  );
});

describe('invalid values are refused with what to set', () => {
  test.each([
    [{ redis: { url: 'redis://a' } }, {}, 'set redis.enabled=false'],
    [{ redis: { enabled: false } }, {}, 'set redis.url'],
    [
      { redis: { enabled: false, url: 'redis://a', username: 'u' } },
      {},
      'set redis.existingSecret',
    ],
    [
      { redis: { enabled: false, url: 'redis://a', tls: { existingSecret: 's' } } },
      {},
      'set redis.url to rediss://',
    ],
    [
      { redis: { enabled: false, url: 'rediss://a', tls: { clientCertificate: true } } },
      {},
      'set redis.tls.existingSecret',
    ],
    [{ monitoring: { serviceMonitor: true } }, {}, 'install the Prometheus Operator first'],
    [{ monitoring: { prometheusRule: true } }, {}, 'monitoring.prometheusRule=false'],
    [
      { monitoring: { serviceMonitor: true } },
      OPERATOR,
      'set networkPolicy.metricsFrom to the namespace of Prometheus',
    ],
    [{ certManager: { enabled: true } }, {}, 'install cert-manager first'],
    [{ certManager: { issuer: { name: 'company' } } }, {}, 'set certManager.enabled=true'],
    [{ criticalPodsQuota: { create: 'never' } }, GKE, 'set criticalPodsQuota.create=auto'],
    [{}, { namespace: 'default' }, '-n nvidia-virtual --create-namespace'],
    [
      { webhook: { translate: ['nvidia'] }, node: { slotMemory: '2GiB' } },
      {},
      'set webhook.translate=[hami]',
    ],
  ])('%j %j', async (values, options, remedy) => {
    await expect(render({ values, ...options })).rejects.toThrow(remedy);
  });

  test('all at once', async () => {
    const values = { redis: { enabled: false }, monitoring: { serviceMonitor: true } };
    await expect(render({ values })).rejects.toThrow(
      /redis\.url is empty[\s\S]*knows no ServiceMonitor/,
    );
  });

  test.each([
    [{ node: { slotsPerGpu: 101 } }, /slotsPerGpu.*100/],
    [{ node: { slotMemory: '2 GB' } }, /slotMemory.*pattern/],
    [{ node: { slotsPerGPU: 5 } }, /slotsPerGPU.*not allowed/],
    [{ node: { profiles: { small: { backend: 'real' } } } }, /backend.*not allowed/],
    [{ node: { gpuModes: { 0: 'shared' } } }, /gpuModes.*'exclusive', 'concurrent'/],
    [{ scheduler: { strategy: 'random' } }, /strategy.*'binpack', 'spread'/],
    [{ node: { kubeletRoot: 'var/lib/kubelet' } }, /kubeletRoot.*pattern/],
    [{ node: { directory: '/nvidia-virtual' } }, /directory.*pattern/],
    [{ node: { directory: `/var/${'x'.repeat(44)}` } }, /directory.*48/],
    [{ node: { driverRoot: 'run/nvidia/driver' } }, /driverRoot.*pattern/],
    [{ redis: { url: 'redis://user:secret@host' } }, /url.*pattern/],
  ])('%j', async (values, sentence) => {
    await expect(render({ values })).rejects.toThrow(sentence);
  });

  test('an older Kubernetes', async () => {
    await expect(render({ version: 'v1.29.9' })).rejects.toThrow('>=1.30.0-0');
  });
});

describe('optional features', () => {
  const isPart = (labels: object, all: KubernetesObject) =>
    Object.entries(labels).every(([name, value]) => all[name] === value);
  /** The container ports of a Service, by name and by number. */
  const targetsOf =
    (endpoints: readonly KubernetesObject[]) =>
    ({ name, port, targetPort }: KubernetesObject): string[] =>
      endpoints.filter((endpoint) => endpoint.port === name).map(() => `${targetPort} ${port}`);

  test('on GKE, a quota admits our pods', async () => {
    const gke = await render(GKE);
    expect(
      gke.find('ResourceQuota', 'nvidia-virtual-critical-pods').spec.scopeSelector
        .matchExpressions[0].values,
    ).toEqual(['system-node-critical', 'system-cluster-critical']);
    expect(chart.of('ResourceQuota')).toEqual([]);
  });

  test("all pods use the chart's PriorityClass", async () => {
    const rendered = await render({ values: { priorityClass: { create: true } }, ...GKE });
    expect(rendered.find('PriorityClass', 'nvidia-virtual').value).toBe(1_000_000_000);
    const classes = [...rendered.pods.values()].flatMap(
      ({ priorityClassName }) => priorityClassName ?? [],
    );
    expect(new Set(classes)).toEqual(new Set(['nvidia-virtual']));
    expect(rendered.of('ResourceQuota')).toEqual([]);
  });

  test('the Grafana board is that of gpu-proxy, and is in git once', async () => {
    const rendered = await render({ values: { monitoring: { grafanaBoard: true } } });
    const board = readFileSync(
      path.join(REPOSITORY, 'gpu-proxy', 'grafana', 'nvidia-virtual.json'),
      'utf8',
    );
    const { data } = rendered.find('ConfigMap', 'nvidia-virtual-grafana-board');
    expect(JSON.parse(data['nvidia-virtual.json'])).toEqual(JSON.parse(board));
  });

  test('a ServiceMonitor selects every metrics port once, and keeps our labels', async () => {
    const values = {
      monitoring: { serviceMonitor: true },
      networkPolicy: { metricsFrom: [PROMETHEUS] },
    };
    const rendered = await render({ values, ...OPERATOR });
    const { selector, endpoints } = rendered.find('ServiceMonitor', 'nvidia-virtual').spec;
    const read = rendered
      .of('Service')
      .filter(({ metadata }) => isPart(selector.matchLabels, metadata.labels));
    const found = (labels: object) =>
      read
        .filter(({ spec }) => isPart(spec.selector, labels))
        .flatMap(({ spec }) => spec.ports.flatMap(targetsOf(endpoints)));
    const makers = rendered.objects.filter(({ spec }) => spec?.template?.spec);
    for (const { metadata, spec } of makers) {
      const ports = spec.template.spec.containers.flatMap(
        (container: KubernetesObject) => container.ports ?? [],
      );
      const wanted = ports.filter(({ name }: KubernetesObject) => name.endsWith('metrics'));
      expect([metadata.name, found(spec.template.metadata.labels).toSorted()]).toEqual([
        metadata.name,
        wanted
          .map(({ name, containerPort }: KubernetesObject) => `${name} ${containerPort}`)
          .toSorted(),
      ]);
    }
    const ours = endpoints.filter(({ scheme }: KubernetesObject) => scheme === undefined);
    expect(ours.map(({ honorLabels }: KubernetesObject) => honorLabels)).toEqual([true, true]);
    expect(chart.of('Service').filter(({ metadata }) => metadata.name.endsWith('metrics'))).toEqual(
      [],
    );
  });
});

describe('network policies', () => {
  const METRICS = ['metrics', 'plugin-metrics', 'kube-metrics'];
  const rulesOf = (rendered: Rendered) =>
    new Map<string, KubernetesObject[]>(
      rendered.of('NetworkPolicy').map(({ metadata, spec }) => [metadata.name, spec.ingress ?? []]),
    );

  test('block scrapers by default', () => {
    const rules = rulesOf(chart);
    expect([...rules.keys()].toSorted()).toEqual(
      ['checks', 'node', 'redis', 'scheduler', 'usage-api', 'webhook'].map(
        (name) => `nvidia-virtual-${name}`,
      ),
    );
    const open = [...rules].flatMap(([name, all]) =>
      all.filter(({ from }) => from === undefined).map(({ ports }) => [name, ports]),
    );
    expect(open).toEqual(
      ['usage-api', 'webhook'].map((name) => [`nvidia-virtual-${name}`, [{ port: 'https' }]]),
    );
    const ports = [...rules.values()]
      .flat()
      .flatMap((rule) => rule.ports.map(({ port }: KubernetesObject) => port));
    expect(ports.filter((port) => METRICS.includes(port))).toEqual([]);
  });

  test('admit the configured scrapers', async () => {
    const rules = rulesOf(
      await render({ values: { networkPolicy: { metricsFrom: [PROMETHEUS] } } }),
    );
    const metrics = [...rules.values()]
      .flat()
      .filter(({ ports }) => METRICS.includes(ports[0].port));
    expect(metrics.map(({ from }) => from)).toEqual(Array(4).fill([PROMETHEUS]));
  });
});

describe('a cluster without a way to the outside', () => {
  const DNS = [53, 5353].flatMap((port) => [
    { protocol: 'UDP', port },
    { protocol: 'TCP', port },
  ]);
  /** The egress rules of the policies that select a pod with these labels. */
  const egressOf = (rendered: Rendered, labels: Record<string, string>): KubernetesObject[][] =>
    rendered
      .of('NetworkPolicy')
      .filter(({ spec: { podSelector } }) => {
        const { matchLabels, matchExpressions = [] } = podSelector;
        const named = Object.entries(matchLabels).every(([key, value]) => labels[key] === value);
        return (
          named &&
          matchExpressions.every(({ key, values }: KubernetesObject) =>
            values.includes(labels[key] ?? ''),
          )
        );
      })
      .map(({ spec }) => (spec.policyTypes.includes('Egress') ? spec.egress : ['anything']));
  const podLabels = ({ objects }: Rendered): [string, Record<string, string>][] =>
    objects
      .filter(({ kind, spec }) => kind === 'Pod' || spec?.template?.spec)
      .map(({ kind, metadata, spec }) => [
        `${kind} ${metadata.name}`,
        kind === 'Pod' ? metadata.labels : spec.template.metadata.labels,
      ]);

  test('every pod reaches only DNS, the API server and our Redis', () => {
    const redis = {
      ports: [{ protocol: 'TCP', port: 6379 }],
      to: [
        {
          podSelector: {
            matchLabels: expect.objectContaining({ 'app.kubernetes.io/component': 'redis' }),
          },
        },
      ],
    };
    const apiServer = {
      ports: [443, 6443, 8443, 16443].map((port) => ({ protocol: 'TCP', port })),
    };
    const pods = podLabels(chart);
    expect(pods.length).toBe(chart.pods.size);
    for (const [name, labels] of pods) {
      const usesRedis = /-(node|usage-api)$/.test(name);
      const rules = [{ ports: DNS }, apiServer, ...(usesRedis ? [redis] : [])];
      expect([name, egressOf(chart, labels)]).toEqual([name, [rules]]);
    }
  });

  test('the API server and another Redis have the address and ports of the values', async () => {
    const apiServer = [{ ipBlock: { cidr: 'fd00::1/128' } }];
    const networkPolicy = { apiServer, apiServerPorts: [16443] };
    const redis = { enabled: false, url: 'rediss://[fd00::2]:6380/1' };
    const rendered = await render({ values: { networkPolicy, redis } });
    const { spec } = rendered.find('NetworkPolicy', 'nvidia-virtual-node');
    expect(spec.egress).toEqual([
      { ports: DNS },
      { ports: [{ protocol: 'TCP', port: 16443 }], to: apiServer },
      { ports: [{ protocol: 'TCP', port: 6380 }] },
    ]);
  });
});

test('without the usage API, nothing of it is left', async () => {
  const values = {
    usageApi: { enabled: false },
    monitoring: { serviceMonitor: true },
    networkPolicy: { metricsFrom: [PROMETHEUS] },
  };
  const rendered = await render({ values, ...OPERATOR });
  expect(rendered.text).not.toMatch(/usage-api|usage\.nvidia-virtual\.io/);
});

describe('with cert-manager', () => {
  const CERT_MANAGER = { apis: ['cert-manager.io/v1/Certificate'] };
  const PARTS = ['webhook', 'usage-api'];

  test('it makes the certificates, and tells the API server whom to trust', async () => {
    const rendered = await render({ values: { certManager: { enabled: true } }, ...CERT_MANAGER });
    for (const part of PARTS) {
      const { spec } = rendered.find('Certificate', `nvidia-virtual-${part}`);
      expect(spec).toMatchObject({
        issuerRef: { kind: 'Issuer', name: 'nvidia-virtual-authority' },
        dnsNames: expect.arrayContaining([`nvidia-virtual-${part}.nvidia-virtual.svc`]),
      });
      const pod = rendered.pods.get(`Deployment nvidia-virtual-${part}`);
      const container = containerOf(pod, part);
      const { NVIDIA_VIRTUAL_CERTIFICATE_DIRECTORY: mountPath } = environmentOf(container);
      expect(container.volumeMounts).toContainEqual({
        name: 'certificate',
        mountPath,
        readOnly: true,
      });
      expect(pod.volumes).toContainEqual({
        name: 'certificate',
        secret: { secretName: spec.secretName },
      });
    }
    const trusting = ['MutatingWebhookConfiguration', 'ValidatingWebhookConfiguration'].map(
      (kind) => [rendered.find(kind, 'nvidia-virtual'), 'webhook'],
    );
    trusting.push([rendered.of('APIService')[0], 'usage-api']);
    for (const [{ kind, metadata }, part] of trusting)
      expect([kind, metadata.annotations]).toEqual([
        kind,
        { 'cert-manager.io/inject-ca-from': `nvidia-virtual/nvidia-virtual-${part}` },
      ]);
  });

  test('our own Secrets and the rights to them are gone', async () => {
    const rendered = await render({ values: { certManager: { enabled: true } }, ...CERT_MANAGER });
    for (const part of PARTS) expect(rendered.has('Secret', `nvidia-virtual-${part}`)).toBe(false);
    const rules = [...rendered.of('Role'), ...rendered.of('ClusterRole')].flatMap(
      (role) => role.rules as KubernetesObject[],
    );
    const named = rules.flatMap(({ resources, resourceNames }) =>
      resources.includes('secrets') ? resourceNames : [],
    );
    expect(named).toEqual(['nvidia-virtual-redis']);
    const trusted = /webhookconfigurations|apiservices/;
    expect(rules.filter(({ resources }) => trusted.test(resources.join()))).toEqual([]);
  });

  test('an issuer of the cluster signs in place of our own authority', async () => {
    const issuer = { kind: 'ClusterIssuer', name: 'company' };
    const certManager = { enabled: true, issuer };
    const rendered = await render({ values: { certManager }, ...CERT_MANAGER });
    expect(rendered.of('Issuer')).toEqual([]);
    expect(rendered.of('Certificate').map(({ spec }) => spec.issuerRef)).toEqual([issuer, issuer]);
  });

  test('is not asked by default', () => {
    expect(chart.text).not.toContain('cert-manager.io');
  });
});

test.each(VERSIONS)('every object for %s is in its stable APIs', async (version) => {
  const rendered = await render({ version });
  const apis = new Set(rendered.objects.map(({ apiVersion }) => apiVersion));
  expect([...apis].filter((api) => /alpha|beta/.test(api))).toEqual([]);
});

test.each([
  ['by default', {}],
  ['with another Redis', { redis: { enabled: false, url: 'redis://there' } }],
])('no field of an object is null %s', async (_case, values) => {
  const { objects } = await render({ values });
  const nulls = objects.flatMap((object) => nullFields(object, object.kind));
  expect(nulls).toEqual([]);
});

function nullFields(value: unknown, place: string): string[] {
  if (value === null) return [place];
  if (typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([name, field]) => nullFields(field, `${place}.${name}`));
}

test('an account may name Secrets only one by one', () => {
  const rules = [...chart.of('Role'), ...chart.of('ClusterRole')].flatMap(
    ({ metadata, rules: all }) =>
      (all as KubernetesObject[]).map((rule) => [metadata.name, rule] as const),
  );
  const secrets = rules.filter(([, { resources }]) => resources.includes('secrets'));
  expect(secrets.length).toBeGreaterThan(0);
  for (const [name, { resourceNames }] of secrets)
    expect([name, resourceNames]).toEqual([name, [expect.any(String)]]);
  for (const [name, rule] of rules)
    expect([name, rule.verbs.includes('*'), rule.resources.includes('*')]).toEqual([
      name,
      false,
      false,
    ]);
});

test('another release name is in every name, and the default name in none', async () => {
  const rendered = await render({ release: 'gpus' });
  for (const { kind, metadata } of rendered.objects)
    if (kind !== 'APIService') expect(`${kind} ${metadata.name}`).toContain(' gpus-nvidia-virtual');
});

test('the chart is well formed', async () => {
  const place = ['--namespace', 'nvidia-virtual', '--kube-version', 'v1.36.3'];
  const { output, status } = await helm('lint', CHART, ...place, '--strict');
  expect([status, output]).toEqual([0, expect.stringContaining('0 chart(s) failed')]);
});

test('a packaged chart contains the target of the link to the Grafana board', async () => {
  const directory = mkdtempSync(path.join(tmpdir(), 'chart-'));
  try {
    expect(await helm('package', CHART, '--destination', directory)).toMatchObject({ status: 0 });
    const packed = path.join(directory, readdirSync(directory)[0] as string);
    const flags = [
      '--namespace',
      'nvidia-virtual',
      '--kube-version',
      'v1.36.3',
      '--set',
      'monitoring.grafanaBoard=true',
    ];
    const { output } = await helm('template', 'nvidia-virtual', packed, ...flags);
    expect(output).toContain('nvidia_virtual_gpu_info');
  } finally {
    rmSync(directory, { recursive: true });
  }
});
