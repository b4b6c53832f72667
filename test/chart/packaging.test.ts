import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Version } from '@cyclonedx/cyclonedx-library/Spec';
import { JsonStrictValidator } from '@cyclonedx/cyclonedx-library/Validation';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { runCommand } from '@nvidia-virtual/toolchain/command';
import { REPOSITORY } from '@nvidia-virtual/toolchain/repository';
import { productVersion } from '@nvidia-virtual/toolchain/version';
import { TestRegistry } from '../kubernetes/cluster/registry.js';
import { Daemon } from '../kubernetes/daemon.js';
import { TestKey } from '../kubernetes/signing-key.js';
import { CHART, helm } from './chart.js';

const BUILDING_TOOLS = 1800_000;
const COMMAND = path.join(REPOSITORY, 'toolchain', 'dist', 'release', 'chart.js');
const NAME = `nvidia-virtual-${productVersion()}`;

let directory: string;
let registry: TestRegistry;
let daemon: Daemon;
let key: TestKey;

beforeAll(async () => {
  directory = mkdtempSync(path.join(tmpdir(), 'packaging-'));
  registry = await TestRegistry.start({
    directory,
    startDaemon: (name, options) => {
      daemon = new Daemon(name, { ...options, logFile: path.join(directory, 'registry.log') });
      return daemon.start();
    },
  });
  key = await TestKey.create(path.join(directory, 'key'));
}, BUILDING_TOOLS);

afterAll(async () => {
  await daemon?.kill();
  rmSync(directory, { recursive: true });
});

/** `npm run chart` into a new directory. */
async function chart(
  ...options: readonly string[]
): Promise<{ output: string; status: number; to: string }> {
  const to = mkdtempSync(path.join(directory, 'chart-'));
  const { status, output } = await runCommand(process.execPath, [
    COMMAND,
    '--output',
    to,
    ...options,
  ]);
  return { status, output, to };
}

test('npm run chart writes an archive like the directory, and an SBOM', async () => {
  const { to, output, status } = await chart();
  expect({ status, output }).toMatchObject({ status: 0 });
  const archive = path.join(to, `${NAME}.tgz`);
  expect(existsSync(`${archive}.prov`)).toBe(false);
  const render = (from: string) =>
    helm('template', 'gpus', from, '--namespace', 'gpus', '--kube-version', 'v1.36.3');
  const rendered = await render(archive);
  expect(rendered).toEqual(await render(CHART));
  expect(rendered.output).toContain(`localhost/nvidia-virtual/node:${productVersion()}`);

  const bill = readFileSync(path.join(to, `${NAME}.cdx.json`), 'utf8');
  expect(await new JsonStrictValidator(Version.v1dot6).validate(bill)).toBeNull();
  for (const purl of ['pkg:npm/ioredis@', 'pkg:npm/%40kubernetes/client-node@', 'pkg:oci/valkey'])
    expect(bill).toContain(`"purl": "${purl}`);
});

test('a pushed chart is installed by its OCI name, and Helm verifies its signature', async () => {
  const push = ['--push', `${registry.host}/gpu`, '--plain-http', ...key.options];
  const { output, status } = await chart(...push);
  expect({ status, output }).toMatchObject({ status: 0 });
  const name = `oci://${registry.host}/gpu/nvidia-virtual`;
  expect(output).toContain(`${name}:${productVersion()}\n`);
  const pull = ['pull', name, '--version', productVersion(), '--plain-http', '--verify'];
  const pulled = await helm(...pull, '--keyring', key.publicKeyring, '--destination', directory);
  expect(pulled).toMatchObject({ status: 0 });
  expect(pulled.output).toContain('Signed by: Release <release@example.com>');

  // One byte more, and the signature holds no longer.
  const archive = path.join(directory, `${NAME}.tgz`);
  appendFileSync(archive, 'x');
  const verified = await helm('verify', archive, '--keyring', key.publicKeyring);
  expect(verified.status).toBe(1);
});

test('a key that is not whole, or has another passphrase, is an error', async () => {
  expect(await chart('--key', 'release@example.com')).toMatchObject({
    status: 1,
    output: expect.stringContaining('set --key, --keyring and --passphrase-file'),
  });
  const wrong = path.join(directory, 'wrong');
  writeFileSync(wrong, 'wrong\n');
  const options = key.options.with(-1, wrong);
  expect(await chart(...options)).toMatchObject({ status: 1 });
});
