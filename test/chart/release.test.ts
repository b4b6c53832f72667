import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { runCommand } from '@nvidia-virtual/toolchain/command';
import { buildKubernetesTools } from '@nvidia-virtual/toolchain/kubernetes-tools';
import { writeArtifacts } from '@nvidia-virtual/toolchain/release/artifacts';
import { KEY_OPTIONS, signingKey } from '@nvidia-virtual/toolchain/release/signing';
import { productVersion } from '@nvidia-virtual/toolchain/version';
import { TestKey } from '../kubernetes/signing-key.js';
import { install, readPlatforms } from '../kubernetes/usage/krew.js';
import { helm } from './chart.js';

const BUILDING_TOOLS = 1800_000;
const VERSION = productVersion();
const CHART = `nvidia-virtual-${VERSION}.tgz`;

let directory: string;
let output: string;
let key: TestKey;

/** The archive of images takes minutes to build, so another file stands in for it. */
beforeAll(async () => {
  directory = mkdtempSync(path.join(tmpdir(), 'release-'));
  output = path.join(directory, 'files');
  key = await TestKey.create(path.join(directory, 'key'));
  const { values } = parseArgs({ args: key.options, options: KEY_OPTIONS });
  await writeArtifacts(
    {
      ...{ output, kubernetes: '1.36.3', changes: '- More.', url: undefined },
      key: signingKey(values),
    },
    async (archive) => writeFileSync(archive, 'images'),
  );
  await buildKubernetesTools(['krew']);
}, BUILDING_TOOLS);

afterAll(() => rmSync(directory, { recursive: true }));

test('SHA256SUMS lists every file of the release, is right, and signed', async () => {
  const sums = readFileSync(path.join(output, 'SHA256SUMS'), 'utf8');
  expect(sums.match(/(?<= {2}).+$/gm)).toEqual([
    `CHANGES-${VERSION}.md`,
    `gpu-usage-v${VERSION}-linux-amd64.tar.gz`,
    `gpu-usage-v${VERSION}-node.tar.gz`,
    'gpu-usage.yaml',
    `nvidia-virtual-${VERSION}.cdx.json`,
    CHART,
    `${CHART}.prov`,
    `nvidia-virtual-images-${VERSION}.tar`,
  ]);
  const check = ['--check', '--strict', 'SHA256SUMS'];
  expect(await runCommand('sha256sum', check, { cwd: output })).toMatchObject({ status: 0 });
  const signed = ['SHA256SUMS.asc', 'SHA256SUMS'].map((name) => path.join(output, name));
  expect(await key.gpg('--verify', ...signed)).toContain('Good signature');
});

test('Helm verifies the chart, and krew installs the plugin', async () => {
  const keyring = ['--keyring', key.publicKeyring];
  expect(await helm('verify', path.join(output, CHART), ...keyring)).toMatchObject({ status: 0 });
  const platforms = readPlatforms(path.join(output, 'gpu-usage.yaml'));
  expect(platforms).toHaveLength(4);
  for (const platform of platforms.slice(0, 2)) {
    const bin = await install(platform, output, directory);
    const plugin = await runCommand(path.join(bin, 'kubectl-gpu_usage'), ['--version']);
    expect(plugin.output).toBe(`kubectl-gpu_usage ${VERSION}\n`);
  }
});
