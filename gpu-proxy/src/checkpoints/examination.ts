import { createReadStream, readdirSync, readlinkSync } from 'node:fs';
import { opendir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { ifThere } from '@nvidia-virtual/service/files';
import { type Fields, filesOf, readEntries } from './criu-images.js';
import { LEFT_OUT } from './images.js';

/** The resources that a parked worker may have. A hostile program may control the worker. */
export interface Expected {
  readonly pid: number;
  /** Undefined: it is the user of this process, with all its rights. */
  readonly uid: number | undefined;
  /** Directories with programs and libraries. Only root can change what is in them. */
  readonly code: readonly string[];
  /** Whether it has namespaces of its own for mounts and network. */
  readonly hasRoom: boolean;
}

/** The socket pair through which files come back, as in native/keeper/shared_files.h. */
const DOOR = ['98', '99'];
/** The loader's directories. */
const LOADER = ['/lib', '/lib64', '/usr/lib', '/usr/lib64'];
const NOTHING = '/dev/null';
const DESCRIPTORS = /^(anon_inode:\[(eventfd|eventpoll)\]|pipe:\[\d+\])$/;
const MAPPINGS = [
  ...[/^$/, /^\[(heap|stack|vdso|vvar|vvar_vclock|vsyscall)\]$/, /^\[anon(_shmem)?:.*\]$/],
  /^\/(dev\/zero|anon_hugepage) \(deleted\)$/,
];
/** Memory files. Ours are those that it shares with others. */
const MEMORY = /^\/memfd:(?!nvidia-virtual).* \(deleted\)$/;
/** Limit on threads of a parked worker, as in native/worker/session/parking.cpp. */
const MOST_THREADS = 8192;
const MOST_DESCRIPTORS = 4096;
const MiB = 2 ** 20;
/** The kernel allows about 65,000 mappings, of 75 bytes in the list without their paths. */
const MOST_LIST = 16 * MiB;
const SHARED_NAMESPACES = ['pid', 'time', 'user'];
const ROOM_NAMESPACES = ['mnt', 'net'];

/**
 * Examines a worker before CRIU, which is root, has anything to do with it. It may still change:
 * what it can be made from is what examineImages() has seen.
 * @throws Error with what it must not have
 */
export async function examineProcess(expected: Expected): Promise<void> {
  const process = `/proc/${expected.pid}`;
  const descriptors = await list(`${process}/fd`, MOST_DESCRIPTORS);
  if (!descriptors) refuse(expected, `more than ${MOST_DESCRIPTORS} descriptors`);
  const threads = await list(`${process}/task`, MOST_THREADS);
  if (!threads) refuse(expected, `more than ${MOST_THREADS} threads`);
  const maps = await readSome(`${process}/maps`, MOST_LIST);
  if (maps === undefined)
    refuse(expected, `a list of mappings of more than ${MOST_LIST / MiB} MiB`);
  for (const thread of threads) await examineThread(`${process}/task/${thread}`, expected);
  examineNamespaces(process, expected);
  for (const name of ['cwd', 'root']) {
    const directory = readlinkSync(`${process}/${name}`);
    if (directory !== '/') refuse(expected, `${directory} as its ${name}`);
  }
  for (const number of descriptors) {
    // The worker closes the pipe after its answer to a command.
    const file = ifThere(() => readlinkSync(`${process}/fd/${number}`));
    if (file !== undefined && !isDescriptor(file, number)) refuse(expected, `${file} open`);
  }
  for (const file of mappedFiles(maps))
    if (![...MAPPINGS, MEMORY].some((each) => each.test(file)) && !isCode(file, expected))
      refuse(expected, `${file} mapped`);
}

/** Undefined if there are more names. */
async function list(directory: string, most: number): Promise<string[] | undefined> {
  const names: string[] = [];
  for await (const { name } of await opendir(directory))
    if (names.push(name) > most) return undefined;
  return names;
}

/** Undefined if there are more bytes. */
async function readSome(file: string, most: number): Promise<string | undefined> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of createReadStream(file) as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > most) return undefined;
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString();
}

function refuse({ pid }: Expected, what: string): never {
  const printed = what.replace(/[^ -~]/g, '?').slice(0, 200);
  throw new Error(`its worker ${pid} has ${printed}, which a parked worker does not have`);
}

async function examineThread(thread: string, expected: Expected): Promise<void> {
  const status = await readFile(`${thread}/status`, 'utf8');
  const valueIn = (name: string) =>
    new RegExp(`^${name}:[ \t]*(.*?)[ \t]*$`, 'm').exec(status)?.[1];
  const { uid = process.getuid?.() } = expected;
  const four = Array(4).fill(uid).join('\t');
  if (valueIn('Uid') !== four) refuse(expected, `the user ids ${valueIn('Uid')}`);
  if (expected.uid !== undefined) {
    if (valueIn('Gid') !== four) refuse(expected, `the group ids ${valueIn('Gid')}`);
    if (valueIn('Groups') !== '') refuse(expected, `the groups ${valueIn('Groups')}`);
    for (const name of ['CapInh', 'CapPrm', 'CapEff', 'CapAmb'])
      if (!/^0+$/.test(valueIn(name) ?? '')) refuse(expected, `capabilities (${name})`);
  }
  if (valueIn('NoNewPrivs') !== '1') refuse(expected, 'a thread without no_new_privs');
  if (valueIn('Seccomp') !== '2') refuse(expected, 'a thread without seccomp filter');
  if (valueIn('TracerPid') !== '0') refuse(expected, `the tracer ${valueIn('TracerPid')}`);
  const children = await readFile(`${thread}/children`, 'utf8');
  if (children !== '') refuse(expected, `the child process ${children.trim()}`);
}

function examineNamespaces(process: string, expected: Expected): void {
  const own = (name: string) => readlinkSync(`/proc/self/ns/${name}`);
  for (const name of readdirSync(`${process}/ns`)) {
    const isOwn = readlinkSync(`${process}/ns/${name}`) === own(name);
    if (SHARED_NAMESPACES.includes(name) && !isOwn) refuse(expected, `a namespace of ${name}`);
    if (ROOM_NAMESPACES.includes(name) && isOwn === expected.hasRoom)
      refuse(expected, `another namespace of ${name}`);
  }
}

function isDescriptor(file: string, number: string): boolean {
  if (file.startsWith('socket:')) return DOOR.includes(number);
  return file === NOTHING || DESCRIPTORS.test(file) || MEMORY.test(file);
}

/** Without links, dots and names that the kernel has marked as deleted. */
function isCode(file: string, { code }: Expected): boolean {
  if (path.normalize(file) !== file || file.endsWith(' (deleted)')) return false;
  return [...LOADER, ...code].some((directory) => file.startsWith(`${directory}/`));
}

/** Such as `2b0000000000-2b0000200000 rw-s 00000000 00:01 8800518    /usr/lib/libc.so.6`. */
function mappedFiles(maps: string): Set<string> {
  const lines = maps.split('\n').filter((line) => line !== '');
  return new Set(lines.map((line) => /^(?:\S+ +){4}\S+ *(.*)$/.exec(line)?.[1] ?? line));
}

/** Numbers of fields and types: CRIU's images/*.proto. */
const TYPE = { regular: 1, pipe: 2, unixSocket: 5, eventfd: 6, eventpoll: 7, memory: 18 };
const FILE = { type: 1, regular: 3, unixSocket: 16 };
const REGULAR = { flags: 2, name: 6, external: 9 };
const SOCKET = { name: 11, namedIn: 14 };
const TREE = { pid: 1, threads: 5 };
const CORE = { thread: 5 };
const THREAD = { rights: 10 };
const RIGHTS = {
  ...{ users: [1, 3, 5, 7], groups: [2, 4, 6, 8], others: 14 },
  ...{ capabilities: [9, 10, 11, 19], stays: 18 },
};
const ACCESS = 3;
/** Beginnings of the names of its files. */
const IMAGES = [
  ...['core', 'fdinfo', 'files', 'fs', 'ids', 'inventory', 'memfd', 'mm', 'pagemap', 'pages'],
  ...['pipes-data', 'pstree', 'seccomp', 'sk-queues', 'stats-dump'],
];

/**
 * Examines what CRIU has written. Only that becomes a process again, so no change of the worker
 * meanwhile can go unseen.
 * @throws Error with what it must not have
 */
export function examineImages(directory: string, expected: Expected): void {
  for (const name of readdirSync(directory))
    if (!LEFT_OUT.test(name) && !IMAGES.includes(kindOf(name)))
      refuse(expected, `something of the kind ${name}`);
  const tree = [...readEntries(path.join(directory, 'pstree.img'))];
  const threads = threadsIn(directory);
  if (tree.length !== 1 || tree[0]?.number(TREE.pid) !== expected.pid)
    refuse(expected, 'other processes');
  const cores = filesOf(directory, 'core-');
  if (cores.length !== threads.length || cores.length > MOST_THREADS)
    refuse(expected, 'other threads');
  for (const file of cores) {
    const [core, another] = readEntries(file);
    if (another) refuse(expected, 'other threads');
    examineRights(core?.messages(CORE.thread)[0], expected);
  }
  for (const file of readEntries(path.join(directory, 'files.img'))) examineFile(file, expected);
}

/** Ids of the threads that CRIU makes from its files. */
export function threadsIn(directory: string): number[] {
  const [process] = readEntries(path.join(directory, 'pstree.img'));
  return process?.numbers(TREE.threads) ?? [];
}

/** Such as `pagemap` of `pagemap-shmem-1.img`. */
function kindOf(name: string): string {
  return name.replace(/(-shmem)?(-\d+)?(\.img)?$/, '');
}

function examineRights(thread: Fields | undefined, expected: Expected): void {
  const rights = thread?.messages(THREAD.rights)[0];
  if (rights?.number(RIGHTS.stays) !== 1) refuse(expected, 'a thread without no_new_privs');
  if (expected.uid === undefined) return;
  const isAll = (fields: readonly number[], value: number) =>
    fields.every((field) => rights.numbers(field).every((each) => each === value));
  const { uid } = expected;
  const isRight = isAll(RIGHTS.users, uid) && isAll(RIGHTS.groups, uid);
  if (!isRight || rights.numbers(RIGHTS.others).length > 0 || !isAll(RIGHTS.capabilities, 0))
    refuse(expected, 'the rights of another user');
}

function examineFile(file: Fields, expected: Expected): void {
  const type = file.number(FILE.type);
  if (type === TYPE.regular) {
    for (const regular of file.messages(FILE.regular)) examineRegular(regular, expected);
  } else if (type === TYPE.unixSocket) {
    for (const socket of file.messages(FILE.unixSocket))
      if (socket.text(SOCKET.name) !== '' || socket.text(SOCKET.namedIn) !== undefined)
        refuse(expected, 'a socket with a name');
  } else if (!Object.values(TYPE).some((each) => each === type)) {
    refuse(expected, `a file of the kind ${type}`);
  }
}

function examineRegular(file: Fields, expected: Expected): void {
  const name = file.text(REGULAR.name) ?? '';
  const isReadOnly = ((file.number(REGULAR.flags) ?? ACCESS) & ACCESS) === 0;
  const isFine = name === NOTHING || (isReadOnly && (name === '/' || isCode(name, expected)));
  if (!isFine || (file.number(REGULAR.external) ?? 0) !== 0) refuse(expected, `${name} open`);
}
