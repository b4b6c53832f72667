import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from '@jest/globals';
import { REPOSITORY } from '@nvidia-virtual/toolchain/repository';

/**
 * Sends SIGTERM as soon as the process handles signals, not earlier: process 1 of a container
 * ignores it until then.
 */
const SIGNAL = `data:text/javascript,const { on } = process;
process.on = function (name, ...others) {
  on.call(this, name, ...others);
  if (name === 'SIGTERM') process.kill(process.pid, name);
  return this;
};
process.addListener = process.on;
process.once = process.on;`;

/** Exit status after an unhandled SIGTERM: an interrupted Job must not count as complete. */
const SIGTERM_STATUS = 128 + constants.signals.SIGTERM;

const KUBECONFIG = {
  clusters: [{ name: 'away', cluster: { server: 'http://127.0.0.1:1' } }],
  contexts: [{ name: 'away', context: { cluster: 'away', user: 'nobody' } }],
  'current-context': 'away',
};

test.each([
  ['scheduler-ext', 'webhook', '--listen', '127.0.0.1:0'],
  ['scheduler-ext', 'extender', '--listen', '127.0.0.1:0'],
  ['usage-api', '--listen', '127.0.0.1:0'],
  ['device-plugin', '--state', 'state', '--kubelet-root', 'kubelet'],
  [
    'release-hooks',
    'check-uninstall',
    '--release',
    'a',
    '--revision',
    '1',
    '--namespace',
    'a',
    '--with-running-pods',
  ],
  ['gpu-proxy', 'serve', '--state', 'state', '--backend', 'simulated'],
])(
  '%s %s ends at once, without side effects, if it is terminated during its start',
  async (name, ...args) => {
    const cwd = mkdtempSync(path.join(tmpdir(), 'end-signal-'));
    try {
      const kubeconfig = path.join(cwd, 'kubeconfig');
      writeFileSync(kubeconfig, JSON.stringify(KUBECONFIG));
      mkdirSync(path.join(cwd, 'kubelet'));
      const program = path.join(REPOSITORY, name, 'bin', `${name}.js`);
      const env = {
        ...process.env,
        NODE_OPTIONS: `--import=${encodeURI(SIGNAL)}`,
        NVIDIA_VIRTUAL_KUBECONFIG: kubeconfig,
      };
      const child = spawn(process.execPath, [program, ...args], { cwd, env });
      const ended = new Promise((resolve) =>
        child.once('exit', (status, signal) => resolve(signal ?? status)),
      );
      const said = await Promise.all([text(child.stdout), text(child.stderr)]);
      expect([await ended, ...said]).toEqual([SIGTERM_STATUS, '', '']);
    } finally {
      rmSync(cwd, { recursive: true });
    }
  },
);
