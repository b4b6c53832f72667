import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { buildKubernetesTools, kubernetesTool } from '@nvidia-virtual/toolchain/kubernetes-tools';
import { REPOSITORY } from '@nvidia-virtual/toolchain/repository';
import { productVersion } from '@nvidia-virtual/toolchain/version';
import { freePorts } from '../ports.js';
import { install, readPlatforms } from './krew.js';
import { nodeObject, podObject, readers } from './objects.js';
import { run, UsageScene } from './scene.js';

const BUILD = path.join(REPOSITORY, 'build', 'kubectl-plugin');

describe('kubectl gpu-usage', () => {
  let scene: UsageScene;
  let anna: string;
  let bin: string;
  let kubectl: string;
  beforeAll(async () => {
    const made = await run(process.execPath, [
      path.join(REPOSITORY, 'toolchain', 'dist', 'kubectl-plugin.js'),
    ]);
    if (made.status !== 0) throw new Error(made.errors);
    await buildKubernetesTools(['krew']);
    scene = await UsageScene.start();
    await scene.apply(...readers('anna', 'team-a'), ...readers('olga'));
    anna = scene.plane.kubeconfig('anna', [], 'team-a');
    kubectl = kubernetesTool('kubectl');
    bin = path.join(scene.directory, 'bin');
    mkdirSync(bin);
    for (const name of ['kubectl-gpu_usage', 'kubectl-gpu-usage', 'kubectl_complete-gpu_usage'])
      symlinkSync(path.join(BUILD, name), path.join(bin, name));
    symlinkSync(kubectl, path.join(bin, 'kubectl'));
    // The API server notices her rights by its own watch.
    await scene.eventually(
      () => asAnna('-o name'),
      ({ status }) => status === 0,
    );
  }, 1_200_000);
  afterAll(() => scene?.stop());

  /** As typed by a user, with an environment of only these variables. */
  const usage = (words: string, environment: NodeJS.ProcessEnv = {}) =>
    run(kubectl, ['gpu-usage', ...words.split(' ').filter(Boolean)], '', {
      PATH: `${bin}:${process.env['PATH']}`,
      HOME: scene.directory,
      KUBECONFIG: scene.plane.adminKubeconfig,
      ...environment,
    });
  const asAnna = (words: string) => usage(words, { KUBECONFIG: anna });
  const cells = (output: string) =>
    output
      .trimEnd()
      .split('\n')
      .map((line) => line.split(/\s{2,}/));

  test("shows the pods of the context's namespace, with the reason of waiting ones", async () => {
    const { output, errors, status } = await asAnna('');
    const [headings, ...rows] = cells(output);
    expect([status, errors]).toEqual([0, '']);
    expect(headings).toEqual([
      'NAME',
      'STATE',
      'SLOTS',
      'MEMORY',
      'QUOTA',
      'TIME',
      'SHARE',
      'NODE',
      'MESSAGE',
    ]);
    expect(rows[0]).toEqual([
      ...['greedy', 'Waiting', '30', '-', '1Gi', '-', '-', '<none>'],
      'Unschedulable: 0/1 nodes are available: 1 Insufficient nvidia-virtual/gpu.',
    ]);
    expect(rows[1]?.slice(0, 5)).toEqual(['idle', 'Idle', '2', '-', '1Gi']);
    expect(rows[2]?.slice(0, 5)).toEqual(['train', 'Active', '4', '1Gi', '2Gi']);
  });

  test('is also `kubectl gpu usage`', async () => {
    const environment = { PATH: `${bin}:${process.env['PATH']}`, KUBECONFIG: anna };
    expect((await run(kubectl, ['gpu', 'usage', '-o', 'name'], '', environment)).output).toContain(
      'podgpuusage.usage.nvidia-virtual.io/train\n',
    );
  });

  test('krew installs it on every platform, and the installed program works', async () => {
    const platforms = readPlatforms(path.join(BUILD, 'gpu-usage.yaml'));
    const names = platforms.map(
      ({ selector: { matchLabels } }) => `${matchLabels.os}/${matchLabels.arch}`,
    );
    expect(names).toEqual(['linux/amd64', 'linux/arm64', 'darwin/amd64', 'darwin/arm64']);
    for (const platform of platforms) {
      const installed = await install(platform, BUILD, scene.directory);
      // As a standalone program it needs no Node.
      const directories = [
        installed,
        path.dirname(kubectl),
        ...(platform.bin.endsWith('.cjs') ? [path.dirname(process.execPath)] : []),
      ];
      const environment = { PATH: directories.join(':'), KUBECONFIG: anna };
      const plugin = path.join(installed, 'kubectl-gpu_usage');
      expect((await run(plugin, ['--version'], '', environment)).output).toBe(
        `kubectl-gpu_usage ${productVersion()}\n`,
      );
      expect((await run(plugin, ['--help'], '', environment)).output).toContain(
        'Usage: kubectl gpu-usage [pods | pod NAME',
      );
      expect((await run(kubectl, ['gpu-usage', '-o', 'name'], '', environment)).output).toContain(
        '/train\n',
      );
    }
  });

  test('an old version of Node is reported', async () => {
    const old = path.join(scene.directory, 'old.cjs');
    writeFileSync(
      old,
      "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: " +
        "'18.20.4' } });",
    );
    const { status, errors } = await run(
      process.execPath,
      ['--require', old, path.join(BUILD, 'kubectl-gpu_usage.cjs')],
      '',
      {},
    );
    expect([status, errors]).toEqual([
      1,
      expect.stringMatching(
        /^error: The plugin requires Node 20 or later, but \S+ is 18\.20\.4\. /,
      ),
    ]);
  });

  test('-A, -n, -l, --sort-by, --no-headers, -o wide', async () => {
    expect(
      cells((await usage('-A --sort-by slots --no-headers')).output).map(
        ([namespace, name]) => `${namespace}/${name}`,
      ),
    ).toEqual(['team-a/greedy', 'team-a/train', 'team-a/idle', 'team-b/secret']);
    expect(cells((await usage('-n team-b --no-headers')).output).map(([name]) => name)).toEqual([
      'secret',
    ]);
    expect(
      cells((await usage('-n team-a -l app=train --no-headers')).output).map(([name]) => name),
    ).toEqual(['train']);
    expect(cells((await usage('-n team-a -o wide')).output)[0]).toEqual(
      expect.arrayContaining([
        'PEAK',
        'EFFICIENCY',
        'WAITING',
        'PROCESSES',
        'FAULTS',
        'GPU',
        'AGE',
      ]),
    );
    const byEfficiency = await usage('-n team-a -o wide --sort-by efficiency --no-headers');
    expect(cells(byEfficiency.output).map(([name]) => name)).toEqual(['idle', 'train', 'greedy']);
    const none = await usage('-n default');
    expect([none.status, none.output, none.errors]).toEqual([
      0,
      '',
      'No pod in namespace default requests nvidia-virtual/gpu.\n',
    ]);
  });

  test('namespaces says what to do without Prometheus, or the right to reach it', async () => {
    const { status, errors } = await usage('namespaces');
    expect([status, errors]).toEqual([
      1,
      expect.stringMatching(
        /^error: Prometheus monitoring\/prometheus-operated:9090 does not answer .*--prometheus/,
      ),
    ]);
    expect((await asAnna('namespaces')).errors).toMatch(
      /^error: Permission denied: .*services\/proxy in namespace monitoring\./,
    );
  });

  test('-o json and yaml print the objects of the API', async () => {
    const list = JSON.parse((await usage('-A -o json')).output) as {
      kind: string;
      items: object[];
    };
    expect([list.kind, list.items.length]).toEqual(['PodGpuUsageList', 4]);
    expect(JSON.parse((await asAnna('pod train -o json')).output)).toMatchObject({
      kind: 'PodGpuUsage',
      state: 'Active',
    });
    expect((await asAnna('pod train -o yaml')).output).toMatch(
      /^apiVersion: usage\.nvidia-virtual\.io\/v1alpha1\nkind: PodGpuUsage\n/,
    );
  });

  test('pod NAME shows each container', async () => {
    const { output } = await asAnna('pod train');
    expect(output).toMatch(/Memory: +1Gi used of 2Gi, peak 1\.5Gi/);
    expect(output).toMatch(/GPU: +0 \(Simulated GPU, GPU-0+-0000-0000-0000-0+1\)/);
    expect(output).toMatch(/Time: +[\d.]+% used of 40%, policy burst/);
  });

  test('nodes and node NAME show each GPU and its pods', async () => {
    const [headings, first, second] = cells((await usage('nodes')).output);
    expect(headings).toEqual([
      'NODE',
      'GPU',
      'MODEL',
      'STATE',
      'SLOTS',
      'FREE',
      'MEMORY',
      'GRANTED',
      'USED',
      'TIME',
    ]);
    expect(first?.slice(0, 9)).toEqual([
      'node-1',
      '0',
      'Simulated GPU',
      'Ready',
      '10',
      '5',
      '8Gi',
      '2.5Gi',
      '1Gi',
    ]);
    expect(second?.slice(0, 9)).toEqual([
      'node-1',
      '1',
      'Simulated GPU',
      'Ready',
      '10',
      '10',
      '8Gi',
      '0',
      '0',
    ]);
    const { output } = await usage('node node-1');
    expect(output).toMatch(/team-b +secret/);
    await scene.apply(nodeObject(false));
    const ill = await scene.eventually(
      async () => (await usage('nodes')).output,
      (text) => text.includes('Unhealthy'),
    );
    expect(ill).toContain(
      'GPU-00000000-0000-0000-0000-000000000002 failed. Its slots are unavailable until it ' +
        'recovers.',
    );
    await scene.apply(nodeObject());
  });

  test('a tenant sees its own namespace, and a message about the others', async () => {
    for (const words of ['-A', '-n team-b', 'pod secret -n team-b', 'nodes']) {
      const { status, output, errors } = await asAnna(words);
      expect([status, output]).toEqual([1, '']);
      expect(errors).toMatch(
        /^error: Permission denied: .* User "anna" cannot .* Ask your administrator for a role/,
      );
    }
    expect((await usage('-n team-b --as anna')).errors).toContain('User "anna" cannot');
    expect((await usage('-A --as olga -o name')).output.trim().split('\n')).toHaveLength(4);
  });

  test('suspend and resume change the annotation, within the rights of the user', async () => {
    const annotation = async (pod: string) => {
      const path = '{.metadata.annotations.nvidia-virtual/suspended}';
      const args = ['get', 'pod', pod, '-n', 'team-a', '-o', `jsonpath=${path}`];
      return (await scene.kubectl(args)).output;
    };
    const refused = await asAnna('suspend train');
    expect([refused.status, refused.errors]).toEqual([
      1,
      expect.stringMatching(
        /^error: Permission denied: .* Who may get and patch a pod may suspend/,
      ),
    ]);
    // `idle` has not used its GPU yet, and the node of the scene suspends nothing.
    expect((await usage('suspend idle -n team-a')).output).toMatch(/^idle is suspended: /);
    // The other replica may know it a moment later.
    await scene.eventually(
      async () => (await usage('-n team-a')).output,
      (text) => /^idle +Suspended /m.test(text),
    );
    expect((await usage('resume idle -n team-a')).output).toBe('idle is resumed.\n');
    const late = await usage('suspend train -n team-a --timeout 1s');
    expect([late.status, late.errors]).toEqual([
      1,
      'error: Pod train of namespace team-a is not suspended: node node-1 has not reported that ' +
        'in time. Its annotation was changed back.\n',
    ]);
    expect(await annotation('train')).toBe('');
    expect((await usage('suspend train -n team-a --timeout 0')).status).toBe(0);
    expect(await annotation('train')).toBe('true');
    expect((await usage('resume train -n team-a --timeout 0')).status).toBe(0);
    expect(await annotation('train')).toBe('');
  });

  test('each error is a message, with exit status 1', async () => {
    const cases: [string, string][] = [
      [
        'pod absent -n team-a',
        'Namespace team-a has no pod absent that requests nvidia-virtual/gpu and has not ended.',
      ],
      ['node absent', 'No node absent has nvidia-virtual GPUs.'],
      ['pod a/b', '"a/b" is not a name'],
      ['-o xml', "Option '-o, --output <format>' argument 'xml' is invalid."],
      ['--frog', "Unknown option '--frog'."],
      ['pod a b', '"b" is too much'],
      ['suspend', '"suspend" requires the name of a pod'],
      ['suspend a --timeout soon', 'It must be a time such as 30s, 2m or 1h.'],
    ];
    for (const [words, sentence] of cases) {
      const { status, errors } = await usage(words);
      expect([words, status, errors]).toEqual([words, 1, expect.stringContaining(sentence)]);
      expect(errors).toMatch(/^error: /);
    }
  });

  test('an error of kubectl is passed on unchanged', async () => {
    const [closed = 0] = await freePorts(1);
    const stranger = scene.plane.kubeconfigFor('wrong');
    const cases: [string, string][] = [
      ['--context absent', 'error: context "absent" does not exist'],
      ['--kubeconfig /absent', 'error: stat /absent: no such file or directory'],
      [
        `-s https://127.0.0.1:${closed}`,
        `The connection to the server 127.0.0.1:${closed} was refused`,
      ],
      [`--kubeconfig ${stranger}`, 'error: You must be logged in to the server'],
      ['--request-timeout x', 'error: Invalid timeout value.'],
      ['-l =x', 'Error from server (BadRequest): The label selector "=x" is invalid: '],
    ];
    for (const [words, sentence] of cases) {
      const { status, output, errors } = await usage(words);
      expect([words, status, output]).toEqual([words, 1, '']);
      expect(errors).toContain(sentence);
    }
  });

  test('without kubectl in PATH it reports that', async () => {
    const plugin = path.join(BUILD, 'kubectl-gpu_usage');
    expect(await run(plugin, [], '', { PATH: '/absent', KUBECONFIG: anna })).toEqual({
      status: 1,
      output: '',
      errors: expect.stringMatching(/^error: The plugin requires kubectl, which is not in PATH\./),
    });
  });

  test('the first kubeconfig wins, and credential plugins work, as in kubectl', async () => {
    const config = JSON.parse(readFileSync(anna, 'utf8')) as {
      users: { user: Record<string, string> }[];
    };
    const credentials = config.users[0]?.user ?? {};
    const decoded = (key: string) => Buffer.from(credentials[key] ?? '', 'base64').toString();
    const status = {
      clientCertificateData: decoded('client-certificate-data'),
      clientKeyData: decoded('client-key-data'),
    };
    const answer = {
      apiVersion: 'client.authentication.k8s.io/v1',
      kind: 'ExecCredential',
      status,
    };
    const program = path.join(scene.directory, 'credentials');
    writeFileSync(
      program,
      `#!/bin/sh\ntest "$WHO" = anna && test -n "$KUBERNETES_EXEC_INFO" && cat ` +
        `<<'END'\n${JSON.stringify(answer)}\nEND\n`,
    );
    chmodSync(program, 0o755);
    const exec = {
      apiVersion: answer.apiVersion,
      command: './credentials',
      env: [{ name: 'WHO', value: 'anna' }],
      interactiveMode: 'Never',
    };
    const first = path.join(scene.directory, 'first.yaml');
    writeFileSync(
      first,
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Config',
        users: [{ name: 'user', user: { exec } }],
      }),
    );
    expect((await usage('-o name', { KUBECONFIG: `/absent:${first}:${anna}` })).output).toContain(
      '/train\n',
    );
    writeFileSync(program, '#!/bin/sh\nexit 3\n');
    expect((await usage('', { KUBECONFIG: `${first}:${anna}` })).errors).toMatch(
      /getting credentials: exec: .* failed with exit code 3/,
    );
  });

  test('connections use the proxy of the kubeconfig', async () => {
    const asked: string[] = [];
    const proxy = createServer().on('connect', ({ url = '' }, client) => {
      asked.push(url);
      const [host = '', port] = url.split(':');
      const server = connect(Number(port), host, () => {
        client.write('HTTP/1.1 200 OK\r\n\r\n');
        client.pipe(server).pipe(client);
      });
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    const config = JSON.parse(readFileSync(anna, 'utf8')) as {
      clusters: { cluster: Record<string, string> }[];
    };
    const [entry] = config.clusters;
    if (entry)
      entry.cluster['proxy-url'] = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const file = path.join(scene.directory, 'proxied.json');
    writeFileSync(file, JSON.stringify(config));
    expect((await usage('-o name', { KUBECONFIG: file })).output).toContain('/train\n');
    expect(asked).toHaveLength(1);
    proxy.close();
  });

  test('-w prints a row for every change', async () => {
    const child = spawn(kubectl, ['gpu-usage', '-w', '--no-headers'], {
      env: { PATH: bin, KUBECONFIG: anna },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    const sees = (pattern: RegExp) =>
      scene.eventually(
        async () => text,
        (all) => pattern.test(all),
      );
    await sees(/^train /m);
    await scene.apply(podObject({ namespace: 'team-a', name: 'late', slots: 1 }));
    await sees(/^late .*Waiting .*No scheduler has considered the pod yet\.$/m);
    child.kill();
    await scene.kubectl(['delete', 'pod', '-n', 'team-a', 'late', '--force', '--grace-period=0']);
  });

  test('Tab completes pods, nodes, contexts and flags, through kubectl', async () => {
    const propose = async (...words: string[]) => {
      const environment = { PATH: `${bin}:${process.env['PATH']}`, KUBECONFIG: anna };
      const { output } = await run(kubectl, ['__complete', 'gpu-usage', ...words], '', environment);
      return output
        .trim()
        .split('\n')
        .map((line) => line.split('\t')[0]);
    };
    // A replica may still show the pod that another test has deleted.
    const names = await scene.eventually(
      () => propose('pod', ''),
      (proposed) => !proposed.includes('late'),
    );
    expect(names).toEqual(['greedy', 'idle', 'train', ':4']);
    expect(await propose('pod', 't')).toEqual(['train', ':4']);
    expect(await propose('suspend', 't')).toEqual(['train', ':4']);
    expect(await propose('--context', '')).toEqual(['test', ':4']);
    expect(await propose('')).toEqual([
      ...['pod', 'pods', 'node', 'nodes', 'namespaces', 'suspend', 'resume', 'move'],
      ...['drain', 'undrain', 'doctor', 'bundle'],
      ':4',
    ]);
    expect(await propose('--sort')).toEqual(['--sort-by', ':4']);
    expect(await propose('-o', 'j')).toEqual(['json', ':4']);
  });

  test('colours are printed on terminals only, and NO_COLOR disables them', async () => {
    const onTerminal = async (environment: NodeJS.ProcessEnv) => {
      const env = {
        PATH: `${bin}:${process.env['PATH']}`,
        KUBECONFIG: anna,
        TERM: 'xterm',
        ...environment,
      };
      return (await run('script', ['-qec', 'kubectl gpu-usage', '/dev/null'], '', env)).output;
    };
    expect(await onTerminal({})).toContain('\u001b[32mActive\u001b[0m');
    expect(await onTerminal({ NO_COLOR: '1' })).not.toContain('\u001b');
    expect((await asAnna('')).output).not.toContain('\u001b');
  });

  test('while Redis is down it prints the age of the figures', async () => {
    await scene.redis.kill();
    const { errors, output, status } = await scene.eventually(
      () => asAnna(''),
      ({ errors: said }) => said !== '',
    );
    expect(errors).toMatch(/^Warning: The ledger of nvidia-virtual \(Redis\) cannot be read: /);
    expect([status, output.includes('train')]).toEqual([0, true]);
    await scene.redis.start();
  });

  test('without the API, or while its servers are down, it prints what to do', async () => {
    for (const replica of scene.replicas) await replica.kill();
    const away = await scene.eventually(
      () => asAnna(''),
      ({ status }) => status !== 0,
    );
    expect(away.errors).toMatch(
      /^error: The usage API of nvidia-virtual does not answer: .*kubectl describe apiservice/,
    );
    await scene.kubectl(['delete', 'apiservice', 'v1alpha1.usage.nvidia-virtual.io']);
    const missing = await scene.eventually(
      () => usage(''),
      ({ errors }) => errors.includes('has no API'),
    );
    expect(missing.errors).toContain(
      'Install its chart, or choose another cluster with --context.',
    );
    expect(missing.status).toBe(1);
  });
});
