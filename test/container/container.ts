import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import type { ContainerAllocateResponse } from '@nvidia-virtual/device-plugin/protocol';
import { type Outcome, runChild } from '../child.js';
import { RELEASE, REPOSITORY } from '../paths.js';

const PROGRAMS = path.join(REPOSITORY, 'test', 'container');
const ENTER = path.join(PROGRAMS, 'enter.sh');
const SECONDS = 120;

interface ContainerOptions {
  /** Directory on the host; the container's file system is assembled in it. */
  readonly directory: string;
  /** The kubelet's answer from Allocate. */
  readonly answer: ContainerAllocateResponse;
  /** Directories of its cgroup; the pid of its first process is written to them. */
  readonly processFiles: readonly string[];
  /** Mounts of the host that it needs, beside the root. */
  readonly shown: readonly string[];
}

/**
 * Creates a container from Allocate's answer, as a runtime does, by unshare: namespaces, root file
 * system, cgroup, no capabilities, no device.
 */
export class Container {
  readonly #options: ContainerOptions;
  #runs = 0;

  constructor(options: ContainerOptions) {
    this.#options = options;
  }

  /**
   * Runs a program of test/container as its first process. @param mounts HOST-PATH CONTAINER-PATH,
   * in addition to those of the answer
   */
  python(
    script: string,
    env: NodeJS.ProcessEnv = {},
    mounts: readonly (readonly [string, string])[] = [],
  ): Promise<Outcome> {
    const program = `/opt/${script}`;
    const interpreter = execFileSync('python3', ['-c', 'import sys; print(sys.executable)'], {
      encoding: 'utf8',
    }).trim();
    return this.#run([interpreter, program], env, [
      ...mounts,
      [path.join(PROGRAMS, script), program],
    ]);
  }

  #run(
    command: readonly string[],
    env: NodeJS.ProcessEnv,
    mounts: readonly (readonly [string, string])[],
  ): Promise<Outcome> {
    const { directory, answer, processFiles, shown } = this.#options;
    const place = path.join(directory, `container-${++this.#runs}`);
    mkdirSync(place, { recursive: true });
    const all = [
      ...answer.mounts.map(({ hostPath, containerPath }) => [hostPath, containerPath] as const),
      ...mounts,
    ];
    // Removes variables that only enter.sh needs: the program has Allocate's variables and those of
    // its image.
    const entry = {
      MOUNTS: all.map((mount) => mount.join(' ')).join('\n'),
      SHOWN: shown.join('\n'),
      HIDDEN: `${REPOSITORY} ${RELEASE}`,
    };
    const image = { PATH: process.env['PATH'], HOME: '/root', ...answer.envs, ...env };
    const clean = [
      'env',
      '-i',
      ...Object.entries(image).map(([name, value]) => `${name}=${value}`),
      ...command,
    ];
    const join = `for file in ${processFiles.join(' ')}; do echo $$ >$file || exit 9; done; exec \
"$@"`;
    const namespaces = [
      'unshare',
      '--mount',
      '--pid',
      '--ipc',
      '--uts',
      '--net',
      '--fork',
      '--kill-child',
    ];
    const args = ['-c', join, 'sh', ...namespaces, ENTER, place, ...clean];
    return runChild('sh', args, { cwd: '/', env: { ...process.env, ...entry }, seconds: SECONDS });
  }
}
