import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { REPOSITORY } from './paths.js';

/** Makes every import of Kubernetes' client fail. */
const HOOKS = `export function resolve(specifier, context, next) {
  if (specifier === '@kubernetes/client-node') throw new Error('loaded by ' + context.parentURL);
  return next(specifier, context);
}`;
const REGISTER = `import { register } from 'node:module'; \
register(${JSON.stringify(asUrl(HOOKS))});`;

function asUrl(source: string): string {
  return `data:text/javascript,${encodeURIComponent(source)}`;
}

function load(module: string) {
  const args = ['--import', asUrl(REGISTER), path.join(REPOSITORY, module)];
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  return { status, stderr };
}

// The import takes a second of CPU time. A kubelet refuses pods until a plugin has registered, and
// programs wait for a restarting proxy.
test.each(['device-plugin/dist/command-line.js', 'gpu-proxy/dist/serve.js'])(
  "%s starts without Kubernetes' client",
  (module) => {
    expect(load(module)).toEqual({ status: 0, stderr: '' });
  },
);

test('a program that imports it fails', () => {
  expect(load('kube-common/dist/api-server.js').stderr).toContain('loaded by');
});
