/** A command in a container of an image, with the names that it prints. */
interface Check {
  readonly command: readonly string[];
  /** The names that it must print; undefined: those that the product has. */
  readonly prints?: readonly string[];
}

export interface Image {
  readonly name: string;
  readonly checks: readonly Check[];
  readonly readOnlyRoot?: boolean;
  /**
   * `other`: the program gets the image's own library, which is a documented limit. A text: the
   * program fails with it.
   */
  readonly expected?: 'other' | RegExp;
}

/** Stands for the names that the product mounts, as arguments. */
const NAMES = '{names}';
const PROBE = '/opt/probe/probe';
const LINKED = '/opt/probe/linked';

const BY_NAME: Check = { command: [PROBE, NAMES] };
const BY_LINK: Check = { command: [LINKED], prints: ['-lcuda'] };
const BY_CTYPES: Check = { command: ['python3', '/opt/probe/probe.py', NAMES] };
const MINIMAL = [BY_NAME, BY_LINK];
const USUAL = [...MINIMAL, BY_CTYPES];

/** The compiler of the image links with the library that the product mounts. */
const BY_COMPILER: Check = {
  command: [
    '/bin/sh',
    '-c',
    'gcc -DLINKED -o /tmp/linked /opt/probe/probe.c -lcuda && /tmp/linked',
  ],
  prints: ['-lcuda'],
};

/** Prints TRITON_LIBCUDA_PATH as a name, too: login shells need it. */
const IN_SHELL = `${PROBE} ${NAMES} && test "$TRITON_LIBCUDA_PATH" = /usr/lib/x86_64-linux-gnu`;
const SSH = [
  ...['ssh', '-o', 'StrictHostKeyChecking=no', '-o', 'UserKnownHostsFile=/dev/null'],
  ...['-o', 'LogLevel=ERROR', '-o', 'ProxyCommand=/usr/sbin/sshd -i'],
];

/** Whether the program writes the files that these variables name. */
const FILES = '/tmp/log /tmp/trace';
const VARIABLES = 'export CUDA_LOG_FILE=/tmp/log NVIDIA_VIRTUAL_TRACE=/tmp/trace';
const SET_USER_ID: Check = {
  command: ['sh', '-c', `${VARIABLES}; /opt/linked call && ! ls ${FILES} 2>/dev/null`],
  prints: ['-lcuda'],
};
const ORDINARY: Check = {
  command: ['sh', '-c', `${VARIABLES}; ${LINKED} call && ls ${FILES}`],
  prints: ['-lcuda'],
};

function ownPath(directory: string): readonly Check[] {
  return [
    { command: [`${directory}/probe`, NAMES] },
    { command: [`${directory}/linked`], prints: ['-lcuda'] },
  ];
}

/** The stages of Containerfile. */
export const IMAGES: readonly Image[] = [
  { name: 'debian', checks: [...USUAL, BY_COMPILER] },
  { name: 'ubuntu-20.04', checks: MINIMAL },
  { name: 'ubuntu-22.04', checks: USUAL },
  { name: 'ubuntu-24.04', checks: USUAL },
  { name: 'ubi', checks: USUAL },
  { name: 'conda', checks: ownPath('/opt/conda/bin') },
  { name: 'compat-in-cache', checks: USUAL },
  { name: 'compat-in-library-path', checks: USUAL },
  { name: 'compat-in-rpath', checks: ownPath('/opt/app') },
  { name: 'compat-in-runpath', checks: ownPath('/opt/app') },
  { name: 'driver-in-cache', checks: USUAL },
  { name: 'driver-package', checks: USUAL },
  { name: 'stubs', checks: [...USUAL, BY_COMPILER] },
  { name: 'own-preload', checks: USUAL },
  { name: 'compat-in-cache', checks: USUAL, readOnlyRoot: true },
  { name: 'non-root', checks: USUAL },
  { name: 'set-user-id', checks: [SET_USER_ID, ORDINARY] },
  {
    name: 'login-shell',
    checks: [
      { command: ['su', '-', 'user', '-c', IN_SHELL] },
      { command: ['su', 'user', '-c', `${PROBE} ${NAMES}`] },
    ],
  },
  {
    name: 'sshd',
    checks: [
      { command: [...SSH, 'root@localhost', `${PROBE} ${NAMES}`] },
      { command: [...SSH, 'root@localhost', `exec bash -lc '${IN_SHELL}'`] },
    ],
  },
  { name: 'distroless', checks: MINIMAL },
  { name: 'split-usr', checks: MINIMAL },
  { name: 'hostile', checks: MINIMAL },
  {
    name: 'compat-in-rpath',
    checks: [{ command: [PROBE, '/usr/local/cuda/compat/libcuda.so.1'], prints: [] }],
    expected: 'other',
  },
  ...[false, true].map((readOnlyRoot) => ({
    ...{ name: 'compat-in-cache', readOnlyRoot, expected: /^regular file$/m },
    checks: [{ command: ['stat', '--format', '%F', '/dev/nvidiactl'], prints: [] }],
  })),
  { name: 'musl', checks: [BY_NAME], expected: /libcuda\.so\.1: No such file or directory/ },
];

/** The command with the names as arguments. */
export function commandOf({ command }: Check, names: readonly string[]): string[] {
  return command.flatMap((word) =>
    word === NAMES ? names : [word.replaceAll(NAMES, names.join(' '))],
  );
}
