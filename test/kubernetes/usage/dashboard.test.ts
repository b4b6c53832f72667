import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { kubernetesTool } from '@nvidia-virtual/toolchain/kubernetes-tools';
import { buildDirectory } from '@nvidia-virtual/toolchain/repository';
import { readers } from './objects.js';
import { run, UsageScene } from './scene.js';

const VERSION = 'apis/usage.nvidia-virtual.io/v1alpha1';
/** What Kubernetes lets a tenant write into an object that others look at. */
const HOSTILE =
  '</td><script>document.title = "taken"</script><img src=x onerror="document.title = \'taken\'">';

const PICTURE = buildDirectory('dashboard.svg');
/** In points: a page of US Letter, and what the figures fill of it. */
const WHOLE_PAGE = 'height="792pt" viewBox="0 0 612 792"';
const UPPER_PART = 'height="510pt" viewBox="0 30 612 510"';

let scene: UsageScene;
const proxies: ChildProcess[] = [];
/** Addresses of the API server for an administrator and for a reader of team-a. */
let admin: string;
let anna: string;

beforeAll(async () => {
  scene = await UsageScene.start();
  await scene.apply(...readers('anna', 'team-a'));
  admin = await proxy(scene.plane.adminKubeconfig);
  anna = await proxy(scene.plane.kubeconfig('anna', [], 'team-a'));
}, 1_200_000);
afterAll(async () => {
  for (const each of proxies) each.kill('SIGKILL');
  await scene?.stop();
});

/** Starts `kubectl proxy`, as a user does. @returns its address */
async function proxy(kubeconfig: string): Promise<string> {
  const started = spawn(
    kubernetesTool('kubectl'),
    ['--kubeconfig', kubeconfig, 'proxy', '--port', '0'],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  proxies.push(started);
  const [line] = (await once(started.stdout, 'data')) as [Buffer];
  return `http://${/127\.0\.0\.1:\d+/.exec(line.toString())?.[0]}`;
}

/** Opens an address in Chromium. @returns what it prints after the page's script has run */
async function chromium(address: string, ...flags: readonly string[]): Promise<string> {
  const { output, errors, status } = await run('chromium', [
    ...['--headless', '--no-sandbox', '--disable-gpu', '--virtual-time-budget=4000'],
    ...[`--user-data-dir=${path.join(scene.directory, 'chromium')}`, ...flags, address],
  ]);
  if (status !== 0) throw new Error(errors);
  return output;
}

/** The document of an address after its script has run. */
function opened(address: string): Promise<string> {
  return chromium(address, '--dump-dom');
}

test('an administrator sees GPUs, pods and waiting pods', async () => {
  const page = await opened(`${admin}/${VERSION}/dashboard`);
  expect(page).toContain('<h3>node-1 / 0</h3>');
  expect(page).toContain('team-a/train</span></td><td>Active</td><td>4</td><td>1.0 GiB of 2.0 GiB');
  expect(page).toContain('<td>team-a/greedy</td><td>30</td>');
});

/** docs/dashboard.svg is this picture. An SVG, because git holds no binary files. */
test('a picture of the page shows the same', async () => {
  const printed = path.join(scene.directory, 'dashboard.pdf');
  const flags = [`--print-to-pdf=${printed}`, '--no-pdf-header-footer'];
  await chromium(`${admin}/${VERSION}/dashboard`, ...flags);
  // Words may be broken at their hyphens.
  expect((await run('pdftotext', [printed, '-'])).output).toMatch(/team-?\s?a\/train/);
  mkdirSync(path.dirname(PICTURE), { recursive: true });
  const { errors } = await run('pdftocairo', ['-svg', '-l', '1', printed, PICTURE]);
  expect(errors).toBe('');
  const cut = readFileSync(PICTURE, 'utf8').replace(WHOLE_PAGE, UPPER_PART);
  expect(cut).toContain(UPPER_PART);
  writeFileSync(PICTURE, cut);
});

test('text of the cluster does not run', async () => {
  await scene.patchStatus(['pod', '-n', 'team-a', 'greedy'], {
    conditions: [
      { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: HOSTILE },
    ],
  });
  // The usage API notices the change by its own watch.
  const page = await scene.eventually(
    () => opened(`${admin}/${VERSION}/dashboard`),
    (text) => text.includes('&lt;script&gt;document.title'),
  );
  expect(page).toContain('<title>GPU usage</title>');
});

test('a tenant sees its namespace, and why it sees no GPUs', async () => {
  const page = await opened(`${anna}/${VERSION}/namespaces/team-a/dashboard`);
  expect(page).toContain('of namespace team-a');
  expect(page).toContain('train</span></td><td>Active</td>');
  expect(page).not.toContain('secret');
  expect(page).toContain('nodegpuusages.usage.nvidia-virtual.io is forbidden');
});

test('who may not list the dashboard of a namespace gets no page', async () => {
  const answer = await fetch(`${anna}/${VERSION}/namespaces/team-b/dashboard`);
  expect(answer.status).toBe(403);
});

test('the page may load nothing but answers of the API', async () => {
  const answer = await fetch(`${anna}/${VERSION}/namespaces/team-a/dashboard`);
  const policy = answer.headers.get('content-security-policy') ?? '';
  expect(policy).toMatch(
    /^default-src 'none'; script-src 'sha256-[^ ]+'; style-src 'sha256-[^ ]+'; connect-src 'self';/,
  );
  expect(await answer.text()).not.toMatch(/https?:\/\//);
});
