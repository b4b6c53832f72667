import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type CommandResult, runCommand } from '@nvidia-virtual/toolchain/command';
import { chartImages } from '@nvidia-virtual/toolchain/images/chart-images';
import {
  buildKubernetesTools,
  KUBERNETES_VERSION,
} from '@nvidia-virtual/toolchain/kubernetes-tools';
import { productVersion } from '@nvidia-virtual/toolchain/version';
import { REPOSITORY } from '../../paths.js';
import { TestKey } from '../signing-key.js';
import { install as installByKrew, readPlatforms } from '../usage/krew.js';
import { makeGpuUsage } from './gpu-usage.js';
import { tenantPod } from './pods.js';
import { install, SLOTS, untilOffered } from './product.js';
import type { NodeScenario, NodeScene } from './scene.js';

const RELEASE = path.join(REPOSITORY, 'toolchain', 'dist', 'release', 'main.js');
const VERSION = productVersion();
const CHART = `nvidia-virtual-${VERSION}.tgz`;
const IMAGES = `nvidia-virtual-images-${VERSION}.tar`;
const BILL = `nvidia-virtual-${VERSION}.cdx.json`;
/** Every file of a release, in the order of SHA256SUMS. */
const FILES = [
  ...[`CHANGES-${VERSION}.md`, `gpu-usage-v${VERSION}-linux-amd64.tar.gz`],
  ...[`gpu-usage-v${VERSION}-node.tar.gz`, 'gpu-usage.yaml', BILL, CHART, `${CHART}.prov`, IMAGES],
];

interface Release {
  readonly directory: string;
  readonly key: TestKey;
  readonly made: CommandResult;
}

let release: Promise<Release> | undefined;

export const artifacts: NodeScenario = {
  name: 'artifacts',
  about:
    'npm run release; a node without a registry runs what its files contain; replaces installation',
  installs: true,
  runtime: 'containerd-2',
  prepare: makeRelease,
  async play(scene) {
    const { tally } = scene;
    const { directory, key, made } = await makeRelease();
    try {
      tally.judge('npm run release', made.status === 0 ? [] : [made.output]);
      if (made.status !== 0) return;
      await judgeFiles(scene, directory, key);
      await judgeNode(scene, directory);
    } finally {
      rmSync(path.dirname(directory), { recursive: true });
    }
  },
};

function makeRelease(): Promise<Release> {
  release ??= makeReleaseIn(mkdtempSync(path.join(tmpdir(), 'release-')));
  return release;
}

async function makeReleaseIn(parent: string): Promise<Release> {
  await makeGpuUsage(); // builds in the same directory
  const directory = path.join(parent, 'release');
  const key = await TestKey.create(path.join(parent, 'key'));
  const args = [RELEASE, '--rehearsal', '--output', directory, ...key.options];
  return { directory, key, made: await runCommand(process.execPath, args, { inBackground: true }) };
}

/** Installs from the files alone, and leaves the product for the scenarios that follow. */
async function judgeNode({ cluster, tally, tenants }: NodeScene, directory: string): Promise<void> {
  const { registry, node, control, tag, kubeScheduler, redis } = chartImages();
  const ours = [node, control].map((name) => `${registry}/${name}:${tag}`);
  await cluster.forget([...ours, `${kubeScheduler}:v${KUBERNETES_VERSION}`, redis]);
  await cluster.import([path.join(directory, IMAGES)]);
  await install(cluster, path.join(directory, CHART));
  await untilOffered(cluster, SLOTS);
  await tenants.applyOnceAdmitted(tenantPod('computes', { does: 'once', slots: 2 }));
  const printed = await tenants.result('computes');
  tally.judge(
    'images of the archive and the packaged chart run a pod',
    printed === 'right\n' ? [] : [printed, await tenants.describe('computes')],
  );
  await tenants.delete('pod/computes');
}

async function judgeFiles({ cluster, tally }: NodeScene, at: string, key: TestKey): Promise<void> {
  const sums = readFileSync(path.join(at, 'SHA256SUMS'), 'utf8');
  const names = sums.match(/(?<= {2}).+$/gm) ?? [];
  tally.judge('SHA256SUMS lists every file', names.join() === FILES.join() ? [] : [sums]);
  const check = ['--check', '--quiet', 'SHA256SUMS'];
  const checked = await runCommand('sha256sum', check, { cwd: at });
  tally.judge('and is right', checked.status === 0 ? [] : [checked.output]);
  const signed = ['SHA256SUMS.asc', 'SHA256SUMS'].map((name) => path.join(at, name));
  const verified = await key.gpg('--verify', ...signed).catch(String);
  tally.judge('and signed', verified.includes('Good signature') ? [] : [verified]);
  const keyring = ['--keyring', key.publicKeyring];
  const { status, output } = await cluster.tryHelm(['verify', path.join(at, CHART), ...keyring]);
  tally.judge('helm verifies the chart', status === 0 ? [] : [output]);

  const bill = readFileSync(path.join(at, BILL), 'utf8');
  const images = ['node', 'control'].flatMap((name) =>
    ['deb/debian/libc6@', 'generic/node@', 'npm/ioredis@']
      .concat(name === 'node' ? ['deb/debian/criu@'] : [])
      .filter((purl) => !bill.includes(`"bom-ref": "nvidia-virtual/${name}#pkg:${purl}`))
      .map((purl) => `${purl} of ${name} is missing`),
  );
  tally.judge('the SBOM lists the contents of images', images);

  await buildKubernetesTools(['krew']);
  const [platform] = readPlatforms(path.join(at, 'gpu-usage.yaml'));
  if (platform === undefined) throw new Error('the manifest for krew has no platform');
  const bin = await installByKrew(platform, at, cluster.directory);
  const plugin = await runCommand(path.join(bin, 'kubectl-gpu_usage'), ['--version']);
  tally.judge(
    'krew installs the plugin',
    plugin.output === `kubectl-gpu_usage ${VERSION}\n` ? [] : [plugin.output],
  );
}
