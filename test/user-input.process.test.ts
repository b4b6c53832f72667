import { parseCgroup } from '@nvidia-virtual/gpu-proxy/pods/cgroup';
import { parseReport } from '@nvidia-virtual/gpu-proxy/sessions/session';
import { readAssignment, readInventory } from '@nvidia-virtual/kube-common/assignment';
import { ANNOTATION } from '@nvidia-virtual/kube-common/names';
import {
  MAXIMUM_LENGTH as MOST_OF_AN_ANNOTATION,
  readPodRequest,
} from '@nvidia-virtual/kube-common/pod-request';
import { readQuantity } from '@nvidia-virtual/kube-common/quantity';
import { readExtenderArgs } from '@nvidia-virtual/scheduler-ext/extender/messages';
import { parseObject } from '@nvidia-virtual/scheduler-ext/json-service';
import { problemsOf } from '@nvidia-virtual/scheduler-ext/webhook/validation';
import { readMemorySize } from '@nvidia-virtual/service/memory-size';
import { POD_USAGE } from '@nvidia-virtual/usage-api/definitions';
import { readQuery, wantsTable } from '@nvidia-virtual/usage-api/serve/query';
import { readPath } from '@nvidia-virtual/usage-api/serve/request';
import {
  fieldSelector,
  labelSelector,
  MAXIMUM_LENGTH as MOST_OF_A_SELECTOR,
} from '@nvidia-virtual/usage-api/serve/selectors';

/** Kubernetes' limit for all annotations of an object. */
const ANNOTATIONS = 256 * 1024;
/** Node's limit for the header of a request. */
const HEAD = 16 * 1024;
/** CPU seconds for one call. A backtracking parser needs minutes or years for these inputs. */
const BUDGET_S = 10;

/** Input with which a backtracking parser tries every division of the text. */
const PIECES = [
  ' ',
  '\t',
  ',',
  '=',
  '(',
  ')',
  '!',
  '"',
  '\\',
  '[',
  '{',
  '/',
  '.',
  '-',
  '1',
  'a',
  'a=',
  'a,',
  ' =',
  '1.',
  '1e',
  'a in (',
  '\n',
  'é',
  '%',
];
const ENDS = ['', 'a\nb', '\u0000', '!', ')', 'x', ' ', '=', '}'];

function adversarial(length: number): string[] {
  return PIECES.flatMap((piece) =>
    ENDS.map(
      (end) =>
        `${piece.repeat(Math.ceil(length / piece.length)).slice(0, length - end.length)}${end}`,
    ),
  );
}

const NAMED = [{ name: 'a' }, { name: 'x' }];

function podWith(annotations: Record<string, string>) {
  const containers = [{ name: 'a', resources: { limits: { 'nvidia-virtual/gpu': '1' } } }];
  return { metadata: { annotations }, spec: { containers } };
}

function reviewed(text: string) {
  const object = podWith({
    [ANNOTATION.memory]: text,
    [ANNOTATION.gpuType]: text,
    [ANNOTATION.assigned]: text,
  });
  return {
    uid: 'u',
    operation: 'CREATE' as const,
    resource: { group: '', resource: 'pods' },
    userInfo: { username: text },
    object,
  };
}

const query = (name: string) => (text: string) =>
  readQuery(new URLSearchParams([[name, text]]), POD_USAGE);

/** Every parser of user input: name, maximum length of the input, parser. */
const PARSERS: [string, number, (text: string) => unknown][] = [
  ...Object.values(ANNOTATION).flatMap((name): [string, number, (text: string) => unknown][] => [
    [
      `annotation ${name}`,
      MOST_OF_AN_ANNOTATION,
      (text) => readPodRequest(podWith({ [name]: text })),
    ],
    [
      `annotation ${name}, as long as Kubernetes allows`,
      ANNOTATIONS,
      (text) => readPodRequest(podWith({ [name]: text })),
    ],
  ]),
  [
    'memory of a pod without slots',
    ANNOTATIONS,
    (text) =>
      readPodRequest(
        { metadata: { annotations: { [ANNOTATION.memory]: text } }, spec: { containers: NAMED } },
        { memory: 2 ** 31, cores: 10 },
      ),
  ],
  ['quantity', ANNOTATIONS, readQuantity],
  ['assignment', ANNOTATIONS, readAssignment],
  ['inventory of a node', ANNOTATIONS, readInventory],
  [
    'admission review',
    ANNOTATIONS,
    (text) => problemsOf(reviewed(text), { scheduler: 's', plugin: 'p' }),
  ],
  ['body of a request', ANNOTATIONS, (text) => parseObject(Buffer.from(text))],
  ['question of kube-scheduler', ANNOTATIONS, (text) => readExtenderArgs(Buffer.from(text))],
  ['label selector', MOST_OF_A_SELECTOR, labelSelector],
  ['field selector', MOST_OF_A_SELECTOR, (text) => fieldSelector(text, { a: () => '' })],
  ...['labelSelector', 'fieldSelector', 'continue', 'limit', 'watch', 'includeObject'].map(
    (name): [string, number, (text: string) => unknown] => [`parameter ${name}`, HEAD, query(name)],
  ),
  ['Accept', HEAD, (text) => wantsTable({ accept: text })],
  ['path', HEAD, readPath],
  ['memory size', HEAD, readMemorySize],
  ['report of a worker', ANNOTATIONS, parseReport],
  ['cgroup of a client', HEAD, (text) => parseCgroup(text)],
];

test.each(PARSERS)(
  '%s: every text of %d characters is accepted or refused in linear time',
  (_, length, parse) => {
    let slowest = { seconds: 0, text: '' };
    for (const text of adversarial(length)) {
      const before = process.cpuUsage();
      try {
        parse(text);
      } catch {
        // A refusal is a result.
      }
      const { user, system } = process.cpuUsage(before);
      const seconds = (user + system) / 1e6;
      if (seconds > slowest.seconds) slowest = { seconds, text: text.slice(0, 20) };
    }
    expect(slowest.seconds < BUDGET_S ? 'in time' : slowest).toBe('in time');
  },
);
