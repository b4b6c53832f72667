import { setTimeout as sleep } from 'node:timers/promises';
import type {
  CoreV1Event,
  CoreV1EventList,
  V1DaemonSet,
  V1Pod,
  V1PodList,
} from '@kubernetes/client-node';
import type { ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { remedyFor } from '@nvidia-virtual/kube-common/remedies';
import { ReleaseError } from './errors.js';
import { refusalOf } from './refusal.js';

interface PreflightOptions {
  readonly api: ApiServer;
  readonly namespace: string;
  readonly release: string;
  /** DaemonSet whose pods write what their node lacks as termination message of a container. */
  readonly daemonSet: string;
  /** Timeout, in milliseconds. */
  readonly patience: number;
  /** Receives progress messages. */
  readonly say: (sentence: string) => void;
}

/** The answer of one node. Undefined sentences: there is none yet. */
interface Answer {
  readonly node: string;
  readonly sentences: readonly string[] | undefined;
}

const PAUSE_MS = 1000;
const MOST_NAMED = 10;
const STUCK = /^(ErrImagePull|ImagePullBackOff|InvalidImageName|CreateContainer\w*Error)$/;

/**
 * Collects what nodes lack. A node that does not answer in time is no reason to fail: it may be
 * down. The DaemonSet is removed in any case.
 * @throws ReleaseError NODES_UNFIT, PODS_REFUSED; ApiError
 */
export async function checkNodes(options: PreflightOptions): Promise<void> {
  try {
    const answers = await collect(options);
    const silent = answers.filter(({ sentences }) => sentences === undefined);
    if (silent.length > 0) options.say(`No answer from ${named(silent.map(({ node }) => node))}.`);
    const problems = grouped(answers);
    if (problems.length === 0) return;
    const { release, namespace } = options;
    const list = problems.map((problem) => `\n- ${problem}`).join('');
    throw new ReleaseError('NODES_UNFIT', { problems: `${list}\n`, release, namespace });
  } finally {
    await remove(options);
  }
}

async function collect(options: PreflightOptions): Promise<Answer[]> {
  const end = Date.now() + options.patience;
  for (;;) {
    const { wanted, pods, events } = await look(options);
    const refusal = pods.length === 0 ? refusedAmong(events, options.daemonSet) : undefined;
    if (refusal) throw refusalOf(refusal, options.namespace);
    const late = Date.now() >= end;
    const answers = pods.map((pod) => answerOf(pod, late, events, options.namespace));
    const complete =
      wanted !== undefined &&
      answers.length >= wanted &&
      answers.every(({ sentences }) => sentences !== undefined);
    if (complete || late) return answers;
    await sleep(PAUSE_MS);
  }
}

interface Seen {
  /** Undefined: the controller has not looked at the DaemonSet yet. */
  readonly wanted: number | undefined;
  readonly pods: readonly V1Pod[];
  readonly events: readonly CoreV1Event[];
}

async function look({ api, namespace, daemonSet }: PreflightOptions): Promise<Seen> {
  const apps = `/apis/apps/v1/namespaces/${namespace}/daemonsets`;
  const core = `/api/v1/namespaces/${namespace}`;
  const { metadata, spec, status } = await api.request<V1DaemonSet>({
    path: `${apps}/${daemonSet}`,
  });
  const labelSelector = Object.entries(spec?.selector.matchLabels ?? {})
    .map(([name, value]) => `${name}=${value}`)
    .join(',');
  const pods = await api.request<V1PodList>({ path: `${core}/pods`, query: { labelSelector } });
  const events = await api.request<CoreV1EventList>({
    path: `${core}/events`,
    query: { fieldSelector: 'type=Warning' },
  });
  const seen = status?.observedGeneration === metadata?.generation;
  const since = Date.parse(String(metadata?.creationTimestamp));
  return {
    wanted: seen ? status?.desiredNumberScheduled : undefined,
    // Pods of a former attempt may still be ending.
    pods: pods.items.filter(({ metadata: { ownerReferences = [] } = {} }) =>
      ownerReferences.some(({ uid }) => uid === metadata?.uid),
    ),
    events: events.items.filter(
      ({ lastTimestamp, metadata: { creationTimestamp } }) =>
        Date.parse(String(lastTimestamp ?? creationTimestamp)) >= since,
    ),
  };
}

function refusedAmong(events: readonly CoreV1Event[], daemonSet: string): CoreV1Event | undefined {
  return events.findLast(
    ({ reason, involvedObject }) => reason === 'FailedCreate' && involvedObject.name === daemonSet,
  );
}

function answerOf(
  pod: V1Pod,
  late: boolean,
  events: readonly CoreV1Event[],
  namespace: string,
): Answer {
  const node = pod.spec?.nodeName ?? '(no node yet)';
  const [state] = pod.status?.initContainerStatuses ?? [];
  const ended = state?.state?.terminated;
  if (ended !== undefined) {
    const { exitCode, message = '' } = ended;
    const failed = exitCode === 0 ? [] : [`The check of node ${node} ended with ${exitCode}.`];
    return { node, sentences: [...message.split('\n').filter(Boolean), ...failed] };
  }
  const stuck = whyNotMounted(pod, events) ?? (late ? whyWaiting(pod) : undefined);
  if (stuck === undefined) return { node, sentences: undefined };
  const remedy = remedyFor(stuck, namespace) ?? '';
  const sentence = `No pod of ours starts on node ${node}: ${stuck.replace(/[.\s]*$/, '.')}`;
  return { node, sentences: [`${sentence} ${remedy}`.trim()] };
}

/** Undefined if the kubelet mounts the node's directories, or will. */
function whyNotMounted({ metadata }: V1Pod, events: readonly CoreV1Event[]): string | undefined {
  return events.findLast(
    ({ message = '', involvedObject }) =>
      involvedObject.uid === metadata?.uid && message.includes('hostPath type check failed'),
  )?.message;
}

/** A registry that fails for a moment is asked again, so this is final at the timeout only. */
function whyWaiting({ status }: V1Pod): string | undefined {
  const { reason = '', message = '' } = status?.initContainerStatuses?.[0]?.state?.waiting ?? {};
  return STUCK.test(reason) ? `${reason}: ${message}` : undefined;
}

/** Equal problems of several nodes are one line. */
function grouped(answers: readonly Answer[]): string[] {
  const nodes = new Map<string, string[]>();
  for (const { node, sentences = [] } of answers)
    for (const sentence of sentences) {
      const general = sentence.replaceAll(node, 'NODE');
      nodes.set(general, [...(nodes.get(general) ?? []), node]);
    }
  return [...nodes].map(([sentence, [first = '', ...more]]) =>
    more.length === 0
      ? sentence.replaceAll('NODE', first)
      : `${sentence} NODE is each of ${named([first, ...more].toSorted())}.`,
  );
}

function named(nodes: readonly string[]): string {
  const more = nodes.length > MOST_NAMED ? ` and ${nodes.length - MOST_NAMED} more` : '';
  return nodes.slice(0, MOST_NAMED).join(', ') + more;
}

async function remove({ api, namespace, daemonSet }: PreflightOptions): Promise<void> {
  const path = `/apis/apps/v1/namespaces/${namespace}/daemonsets/${daemonSet}`;
  await api.request({ method: 'DELETE', path, query: { propagationPolicy: 'Background' } });
}
