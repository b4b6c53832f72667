import type { CoreV1Event, V1ContainerStatus, V1Node, V1Pod } from '@kubernetes/client-node';
import { PROBLEMS_ANNOTATION, RESOURCE } from '@nvidia-virtual/kube-common/names';
import { remedyFor } from '@nvidia-virtual/kube-common/remedies';
import type { ClusterState } from './cluster-state.js';

/** The part of the cluster that a diagnosis is about, and what is wrong with it. */
export interface Diagnosis {
  /** `cluster`, or `node NAME`. */
  readonly subject: string;
  /** Its versions and figures, as a sentence. */
  readonly facts: string;
  /** One sentence each, with the command that repairs it. Empty: nothing is wrong. */
  readonly problems: readonly string[];
}

const NODE_LABEL = 'nvidia-virtual/node';
const PROFILE_LABEL = 'nvidia-virtual/profile';
/** Milliseconds. The controller repeats the event of a pod that it may not create. */
const RECENT = 30 * 60_000;
const FINE = /^(PodInitializing|ContainerCreating)$/;

/** Diagnoses the release, then each of its nodes. @param now for the age of events */
export function diagnose(state: ClusterState, now = Date.now()): Diagnosis[] {
  return [diagnoseCluster(state, now), ...nodesOf(state).map((node) => diagnoseNode(state, node))];
}

function diagnoseCluster(state: ClusterState, now: number): Diagnosis {
  const { kubernetes, namespace, release, version, unseen } = state;
  return {
    subject: 'cluster',
    facts:
      `Kubernetes ${kubernetes}, nvidia-virtual ${version}, ` +
      `release ${release} in namespace ${namespace}`,
    problems: [
      ...refusals(state, now),
      ...noNodes(state),
      ...state.pods
        .filter(({ metadata }) => metadata?.ownerReferences?.[0]?.kind !== 'DaemonSet')
        .filter(({ status }) => status?.phase !== 'Succeeded')
        .flatMap((pod) => podProblems(state, pod)),
      ...missingReplicas(state),
      ...apiProblems(state),
      ...unseen,
    ],
  };
}

/** Pods that Kubernetes refuses have no object, only an event of their controller. */
function refusals(
  { events, namespace, workloads, daemonSets }: ClusterState,
  now: number,
): string[] {
  const owners = [...daemonSets, ...workloads].map(({ metadata }) => metadata?.name ?? '');
  const newest = new Map<string, CoreV1Event>();
  for (const event of events) {
    const { reason, involvedObject, lastTimestamp, metadata } = event;
    const age = now - Date.parse(String(lastTimestamp ?? metadata.creationTimestamp));
    const name = involvedObject.name ?? '';
    const owner = owners.find((one) => name === one || name.replace(/-[0-9a-z]+$/, '') === one);
    if (reason === 'FailedCreate' && owner !== undefined && age < RECENT) newest.set(owner, event);
  }
  return [...newest].map(([owner, { message = '' }]) =>
    sentences(
      `Kubernetes rejects the pods of ${owner}: ${message.replace(/^Error creating: /, '')}`,
      remedyFor(message, namespace) ?? 'Change the policy that rejects them.',
    ),
  );
}

function noNodes({ daemonSets }: ClusterState): string[] {
  return daemonSets.every(({ status }) => status?.desiredNumberScheduled === 0)
    ? [
        'No node is ours, because none has a label that says that it has GPUs: ' +
          `\`kubectl label node NODE ${NODE_LABEL}=true\`.`,
      ]
    : [];
}

function missingReplicas({ workloads, namespace }: ClusterState): string[] {
  return workloads.flatMap(({ kind, metadata, spec, status }) => {
    const [wanted, made] = [spec?.replicas ?? 1, status?.replicas ?? 0];
    const name = metadata?.name ?? '';
    return made >= wanted
      ? []
      : [
          `${made} of ${wanted} pods of ${name} exist: ` +
            `\`kubectl -n ${namespace} describe ${(kind ?? 'deployment').toLowerCase()} ${name}\`.`,
        ];
  });
}

function apiProblems({ apiService }: ClusterState): string[] {
  const available = apiService?.status?.conditions?.find(({ type }) => type === 'Available');
  return available === undefined || available.status === 'True'
    ? []
    : [
        sentences(
          `The API server does not reach the usage API: ${available.message ?? ''}`,
          `\`kubectl describe apiservice ${apiService?.metadata?.name}\` shows more.`,
        ),
      ];
}

/** Nodes with a pod of the DaemonSet, and nodes that should have one. */
function nodesOf({ nodes, pods }: ClusterState): V1Node[] {
  const served = new Set(pods.filter(isNodePod).map(({ spec }) => spec?.nodeName));
  return nodes.filter(
    ({ metadata }) => served.has(metadata?.name) || metadata?.labels?.[NODE_LABEL] === 'true',
  );
}

function isNodePod({ metadata }: V1Pod): boolean {
  return metadata?.labels?.['app.kubernetes.io/component'] === 'node';
}

function diagnoseNode(state: ClusterState, node: V1Node): Diagnosis {
  const name = node.metadata?.name ?? '';
  const pod = state.pods.find((one) => isNodePod(one) && one.spec?.nodeName === name);
  const slots = Number(node.status?.allocatable?.[RESOURCE] ?? 0);
  const { kernelVersion, osImage, containerRuntimeVersion } = node.status?.nodeInfo ?? {};
  const problems = [
    ...readiness(node),
    ...(pod === undefined ? [noPod(state, node)] : podProblems(state, pod)),
    ...(pod !== undefined && runsPlugin(pod) ? readProblems(node) : []),
  ];
  if (slots === 0 && problems.length === 0)
    problems.push(
      `The node offers no ${RESOURCE}: \`kubectl -n ${state.namespace} logs ` +
        `${pod?.metadata?.name} -c device-plugin\` says why.`,
    );
  return {
    subject: `node ${name}`,
    facts: `${slots} slots, ${osImage}, Linux ${kernelVersion}, ${containerRuntimeVersion}`,
    problems,
  };
}

function readiness({ metadata, status }: V1Node): string[] {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  return ready === undefined || ready.status === 'True'
    ? []
    : [
        sentences(
          `The node is not ready: ${ready.message ?? ready.reason ?? ''}`,
          `\`kubectl describe node ${metadata?.name}\` shows more.`,
        ),
      ];
}

function noPod({ namespace, daemonSets }: ClusterState, { metadata }: V1Node): string {
  const of = (profile: string | undefined) =>
    daemonSets.find(({ spec }) => spec?.selector.matchLabels?.[PROFILE_LABEL] === profile);
  // A node with the name of no profile has none.
  const profile = metadata?.labels?.[PROFILE_LABEL];
  const name = (of(profile) ?? of(undefined))?.metadata?.name;
  return (
    `DaemonSet ${name} has no pod here: ` +
    `\`kubectl -n ${namespace} describe daemonset ${name}\` and ` +
    `\`kubectl describe node ${metadata?.name}\` say why.`
  );
}

/** The annotation is as old as the last life of the plugin, so it counts only while that runs. */
function runsPlugin({ status }: V1Pod): boolean {
  return (
    status?.containerStatuses?.some(
      ({ name, state }) => name === 'device-plugin' && state?.running !== undefined,
    ) ?? false
  );
}

/** Problems that the device plugin found. Only it and administrators may write the annotation. */
function readProblems({ metadata }: V1Node): string[] {
  try {
    const found: unknown = JSON.parse(metadata?.annotations?.[PROBLEMS_ANNOTATION] ?? '[]');
    return Array.isArray(found) ? found.map(String) : [];
  } catch {
    return [`The annotation ${PROBLEMS_ANNOTATION} is no JSON: restart the device plugin.`];
  }
}

function podProblems(state: ClusterState, pod: V1Pod): string[] {
  const { namespace } = state;
  const name = pod.metadata?.name ?? '';
  const show = `\`kubectl -n ${namespace} describe pod ${name}\` shows more.`;
  const say = (what: string, more = show) =>
    sentences(`Pod ${name} ${what}`, remedyFor(what, namespace) ?? more);
  const unplaced = pod.status?.conditions?.find(
    ({ type, status }) => type === 'PodScheduled' && status === 'False',
  );
  if (unplaced !== undefined) return [say(`has no node: ${unplaced.message ?? ''}`)];
  const mount = state.events.findLast(
    ({ reason, involvedObject }) =>
      reason === 'FailedMount' && involvedObject.uid === pod.metadata?.uid,
  );
  const { initContainerStatuses = [], containerStatuses = [] } = pod.status ?? {};
  const waiting = initContainerStatuses.length + containerStatuses.length > 0;
  const failed = [...initContainerStatuses, ...containerStatuses].flatMap((container) => {
    const reason = whyNotRunning(container);
    if (reason === undefined) return [];
    const log = `\`kubectl -n ${namespace} logs ${name} -c ${container.name} --previous\``;
    const more = container.restartCount > 0 ? `${log} shows more.` : show;
    return [say(`does not run its container ${container.name}: ${reason}`, more)];
  });
  if (failed.length > 0) return failed;
  const starting = pod.status?.phase === 'Pending' || !waiting;
  if (starting && mount !== undefined) return [say(`does not start: ${mount.message ?? ''}`)];
  const ready = pod.status?.conditions?.find(({ type }) => type === 'Ready');
  return ready?.status === 'False' && pod.status?.phase === 'Running'
    ? [say(`is not ready: ${ready.message ?? ''}`, readyCommand(namespace, pod))]
    : [];
}

function readyCommand(namespace: string, { metadata, status }: V1Pod): string {
  const container = status?.containerStatuses?.find(({ ready }) => !ready)?.name ?? '';
  return `\`kubectl -n ${namespace} logs ${metadata?.name} -c ${container}\` says why.`;
}

/** Undefined: it runs, has done its work, or is about to start for the first time. */
function whyNotRunning({ state, lastState }: V1ContainerStatus): string | undefined {
  const { waiting, terminated } = state ?? {};
  const ended = terminated ?? lastState?.terminated;
  const message = lastLine(ended?.message);
  if (terminated !== undefined && terminated.exitCode === 0) return undefined;
  if (terminated !== undefined) return message || `it ended with status ${terminated.exitCode}`;
  if (waiting === undefined || FINE.test(waiting.reason ?? '')) return undefined;
  return message || `${waiting.reason}: ${waiting.message ?? ''}`;
}

/** The last line of the log of a container that failed is the reason. */
function lastLine(text = ''): string {
  return text.trimEnd().split('\n').at(-1) ?? '';
}

function sentences(first: string, second: string): string {
  return `${first.replace(/[.:\s]*$/, '.')} ${second}`;
}
