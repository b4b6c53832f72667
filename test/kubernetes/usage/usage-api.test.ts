import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { kubernetesTool } from '@nvidia-virtual/toolchain/kubernetes-tools';
import { podObject, readers } from './objects.js';
import { run, UsageScene } from './scene.js';

describe('the usage API in a real API server', () => {
  let scene: UsageScene;
  let anna: string;
  let nobody: string;
  beforeAll(async () => {
    scene = await UsageScene.start();
    await scene.apply(...readers('anna', 'team-a'), ...readers('olga'));
    anna = scene.plane.kubeconfig('anna', [], 'team-a');
    nobody = scene.plane.kubeconfig('nobody');
  }, 1_200_000);
  afterAll(() => scene?.stop());

  const json = async <T>(...args: string[]) =>
    JSON.parse((await scene.kubectl([...args, '-o', 'json'])).output) as T;

  test('kubectl finds the resources by their short names and prints columns', async () => {
    const { output } = await scene.kubectl(['get', 'pgu', '-n', 'team-a']);
    const lines = output
      .trimEnd()
      .split('\n')
      .map((line) => line.split(/\s{2,}/));
    expect(lines[0]).toEqual(['NAME', 'STATE', 'SLOTS', 'MEMORY', 'TIME', 'NODE', 'AGE']);
    expect(
      lines.slice(1).map(([name, state, slots, memory]) => [name, state, slots, memory]),
    ).toEqual([
      ['greedy', 'Waiting', '30', '-/1Gi'],
      ['idle', 'Idle', '2', '-/1Gi'],
      ['train', 'Active', '4', '1Gi/2Gi'],
    ]);
    const nodes = (await scene.kubectl(['get', 'ngu', '--no-headers'])).output.split(/\s+/);
    expect(nodes.slice(0, 7)).toEqual(['node-1', 'Ready', '2', '20', '13', '16Gi', '1Gi']);
  });

  test('a pod shows its quota, memory use and share of time', async () => {
    const pod = await json<object>('get', 'pgu', '-n', 'team-a', 'train');
    expect(pod).toMatchObject({
      apiVersion: 'usage.nvidia-virtual.io/v1alpha1',
      kind: 'PodGpuUsage',
      metadata: { name: 'train', namespace: 'team-a', labels: { app: 'train' } },
      state: 'Active',
      node: 'node-1',
      slots: 4,
      containers: [
        {
          name: 'main',
          sessions: 1,
          faults: 0,
          memory: { quota: 2 ** 31, used: 2 ** 30, peak: 1.5 * 2 ** 30 },
          // figures.test.ts of the usage API checks the values.
          time: { share: 40, used: expect.any(Number) },
        },
      ],
    });
  });

  test("a waiting pod shows the scheduler's reason", async () => {
    const pod = await json<object>('get', 'pgu', '-n', 'team-a', 'greedy');
    expect(pod).toMatchObject({
      state: 'Waiting',
      message: 'Unschedulable: 0/1 nodes are available: 1 Insufficient nvidia-virtual/gpu.',
    });
  });

  test('a node shows what is free on each GPU', async () => {
    const node = await json<object>('get', 'ngu', 'node-1');
    expect(node).toMatchObject({
      state: 'Ready',
      slots: { total: 20, used: 7, free: 13 },
      gpus: [
        {
          index: 0,
          healthy: true,
          memory: { total: 2 ** 33, granted: 2.5 * 2 ** 30, used: 2 ** 30 },
          slots: { used: 5, free: 5 },
          time: { granted: 50 },
        },
        { index: 1, slots: { used: 0, free: 10 }, allocations: 0, time: { granted: 0, used: 0 } },
      ],
    });
  });

  test('selectors, pages and names work as for every resource', async () => {
    const names = async (...args: string[]) =>
      (await scene.kubectl(['get', 'pgu', '-A', '-o', 'name', ...args])).output.trim().split('\n');
    const name = (pod: string) => `podgpuusage.usage.nvidia-virtual.io/${pod}`;
    expect(await names('-l', 'app in (train)')).toEqual([name('train')]);
    expect(await names('-l', '!app')).toEqual([name('greedy'), name('secret')]);
    expect(await names('--field-selector', 'state!=Waiting,node=node-1')).toEqual([
      name('idle'),
      name('train'),
      name('secret'),
    ]);
    expect(await names('--chunk-size', '1')).toHaveLength(4);
    expect((await scene.kubectl(['get', 'pgu', '--field-selector', 'a=b'])).errors).toContain(
      'it must use =, == or != with one of metadata.name, metadata.namespace, node, state',
    );
  });

  test('RBAC of Kubernetes decides: a tenant sees only its own namespace', async () => {
    const asAnna = { kubeconfig: anna };
    expect(
      (await scene.kubectl(['get', 'pgu', '-o', 'name'], asAnna)).output.trim().split('\n'),
    ).toHaveLength(3);
    for (const args of [
      ['get', 'pgu', '-A'],
      ['get', 'pgu', '-n', 'team-b'],
      ['get', 'pgu', '-n', 'team-b', 'secret'],
      ['get', 'ngu'],
    ]) {
      const { status, errors, output } = await scene.kubectl(args, asAnna);
      expect([status, output]).toEqual([1, '']);
      expect(errors).toContain('is forbidden: User "anna" cannot');
    }
    expect(
      (await scene.kubectl(['get', 'pgu', '-n', 'team-a'], { kubeconfig: nobody })).errors,
    ).toContain('is forbidden: User "nobody"');
    const olga = { kubeconfig: scene.plane.kubeconfig('olga') };
    expect(
      (await scene.kubectl(['get', 'pgu,ngu', '-A', '-o', 'name'], olga)).output.trim().split('\n'),
    ).toHaveLength(5);
  });

  test('kubectl describes and sorts', async () => {
    const describe = await scene.kubectl(['describe', 'pgu', '-n', 'team-a', 'train']);
    expect(describe.output).toMatch(/^Name: +train\n.*^Slots: +4\n.*^State: +Active\n/ms);
    const sorted = ['get', 'pgu', '-n', 'team-a', '--sort-by', '.slots', '--no-headers'];
    expect((await scene.kubectl(sorted)).output).toMatch(/^idle .*^train .*^greedy /ms);
  });

  test('it is read-only, and a missing pod is a message', async () => {
    expect((await scene.kubectl(['delete', 'pgu', '-n', 'team-a', 'train'])).errors).toContain(
      'DELETE is not supported: usage is read-only.',
    );
    expect((await scene.kubectl(['get', 'pgu', '-n', 'team-a', 'absent'])).errors).toContain(
      'podgpuusages.usage.nvidia-virtual.io "absent" not found: no pod of this name requests ' +
        'nvidia-virtual/gpu',
    );
  });

  test('kubectl explain knows the fields', async () => {
    const { output } = await scene.eventually(
      () => scene.kubectl(['explain', 'podgpuusages.containers.time']),
      ({ status }) => status === 0,
    );
    expect(output).toContain('Part of the window spent waiting for a GPU.');
  });

  test('a client other than the API server gets nothing, whatever headers it sends', async () => {
    for (const address of scene.addresses) {
      const headers = ['-H', 'X-Remote-User: admin', '-H', 'X-Remote-Group: system:masters'];
      const { output } = await run('curl', [
        '-sk',
        ...headers,
        `${address}/apis/usage.nvidia-virtual.io/v1alpha1/podgpuusages`,
      ]);
      expect(JSON.parse(output)).toMatchObject({
        kind: 'Status',
        code: 401,
        reason: 'Unauthorized',
      });
    }
  });

  test('a watch reports a new pod, its change and its deletion', async () => {
    const watch = spawn(
      kubernetesTool('kubectl'),
      ['--kubeconfig', anna, 'get', 'pgu', '-w', '--output-watch-events', '-o', 'json'],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    let text = '';
    watch.stdout.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    const sees = (pattern: RegExp) =>
      scene.eventually(
        async () => text,
        (all) => pattern.test(all),
      );
    await sees(/"name": ?"train"/);
    await scene.apply(podObject({ namespace: 'team-a', name: 'late', slots: 1 }));
    await sees(/"type": ?"ADDED".*"name": ?"late"/s);
    await scene.kubectl([
      'delete',
      'pod',
      '-n',
      'team-a',
      'late',
      '--wait=false',
      '--grace-period=0',
      '--force',
    ]);
    await sees(/"type": ?"DELETED"/);
    watch.kill();
  });

  test('a user with too many watches is refused another one, and others are not', async () => {
    const api = ApiServer.load(anna);
    const admin = ApiServer.load(scene.plane.adminKubeconfig);
    const path = '/apis/usage.nvidia-virtual.io/v1alpha1/namespaces/team-a/podgpuusages';
    const all = new AbortController();
    const watch = async (client: ApiServer) =>
      (await client.stream({ path, query: { watch: true } }, all.signal)).on('error', () => {});
    const watches = await Promise.allSettled(Array.from({ length: 40 }, () => watch(api)));
    const refused = watches.filter((one) => one.status === 'rejected');
    // Each of the two replicas has 16 at most.
    expect(refused.length).toBeGreaterThanOrEqual(8);
    const message = 'This server has 16 open watches of user "anna", which is the limit.';
    for (const { reason } of refused)
      expect(reason).toMatchObject({ status: 429, message: expect.stringContaining(message) });
    // The other replica may still show the pod that another test has deleted.
    await scene.eventually(
      () => api.request<{ items: object[] }>({ path }),
      ({ items }) => items.length === 3,
    );
    await watch(admin);
    all.abort();
    api.close();
    admin.close();
  });

  test('a namespace can be deleted although the API is aggregated', async () => {
    await scene.plane.startControllerManager();
    await scene.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'short' } });
    await scene.kubectl(['delete', 'namespace', 'short', '--wait=false']);
    await scene.eventually(
      () => scene.kubectl(['get', 'namespace', 'short']),
      ({ errors }) => errors.includes('not found'),
    );
    await scene.plane.daemon('kube-controller-manager').stop();
  });

  test('without Redis the last figures are shown, with a warning of their age', async () => {
    await scene.redis.kill();
    const { errors, output } = await scene.eventually(
      () => scene.kubectl(['get', 'pgu', '-n', 'team-a']),
      ({ errors: said }) => said !== '',
    );
    expect(errors).toMatch(
      /^Warning: The ledger of nvidia-virtual \(Redis\) cannot be read: .* See the log of nvidia-/m,
    );
    expect(output).toContain('train');
    await scene.redis.start();
    await scene.eventually(
      () => scene.kubectl(['get', 'pgu', '-n', 'team-a', 'train']),
      (after) => after.errors === '' && after.output.includes('Active'),
    );
  });

  test('a terminating replica answers, but is not ready and ends its watches', async () => {
    const api = ApiServer.load(scene.plane.adminKubeconfig);
    const path = '/apis/usage.nvidia-virtual.io/v1alpha1/podgpuusages';
    const watch = await api.stream(
      { path, query: { watch: true, allowWatchBookmarks: true } },
      new AbortController().signal,
    );
    const events = text(watch);
    for (const { pid } of scene.replicas) process.kill(pid, 'SIGTERM');
    const readyz = ['-s', '--unix-socket', `${scene.directory}/1.sock`, 'http://localhost/readyz'];
    await scene.eventually(
      () => run('curl', readyz),
      ({ output }) => output.includes('"notReady":{"end":"The usage API is shutting down."}'),
    );
    expect((await api.request<{ items: object[] }>({ path })).items).toHaveLength(4);
    const last = JSON.parse((await events).trimEnd().split('\n').at(-1) ?? '') as object;
    expect(last).toMatchObject({
      type: 'BOOKMARK',
      object: { metadata: { resourceVersion: expect.stringMatching(/^\d+$/) } },
    });
    await scene.eventually(
      async () => scene.replicas.some(({ alive }) => alive),
      (alive) => !alive,
    );
    for (const replica of scene.replicas) replica.start();
    await scene.eventually(
      () => scene.kubectl(['get', 'pgu', '-A', '-o', 'name']),
      ({ status }) => status === 0,
    );
    api.close();
  });

  test('health and metrics are served', async () => {
    const socket = `${scene.directory}/1.sock`;
    await scene.eventually(
      () => run('curl', ['-s', '--unix-socket', socket, 'http://localhost/readyz']),
      ({ output }) => output.includes('"ready":true'),
    );
    const { output } = await run('curl', [
      '-s',
      '--unix-socket',
      socket,
      'http://localhost/metrics',
    ]);
    expect(output).toMatch(/nvidia_virtual_usage_api_pods 4/);
  });
});
