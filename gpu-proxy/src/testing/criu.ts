import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { locateInstallation } from '../host/installation.js';

const isInstalled = process.getuid?.() === 0 && spawnSync('criu', ['check']).status === 0;
const beside = path.join(path.dirname(locateInstallation().worker), 'criu', 'criu');

/** For tests that write processes to files: `criu` has to be installed, and suit the kernel. */
export const withCriu = isInstalled ? test : test.skip;
/** For workers with rooms: these show only a CRIU beside the worker, where .ci/criu puts it. */
export const withCriuInRoom = isInstalled && existsSync(beside) ? test : test.skip;
