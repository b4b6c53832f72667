import type { V1ConfigMap, V1Node, V1Pod, V1Secret } from '@kubernetes/client-node';
import { API_VERSION } from '@nvidia-virtual/usage-api/resources';
import type { ClusterReader, ClusterState } from '../doctor/cluster-state.js';
import { type Diagnosis, diagnose } from '../doctor/findings.js';
import { diagnosisLines } from '../doctor/view.js';
import type { Entry } from './archive.js';
import { Redaction } from './redaction.js';

interface BundleOptions {
  readonly reader: ClusterReader;
  readonly state: ClusterState;
  /** Version of this plugin. */
  readonly plugin: string;
}

const LOG_LIMITS = { tailLines: '5000', limitBytes: '1000000', timestamps: 'true' };
/** Nodes whose logs are included: those with problems first. */
const MOST_NODES = 10;
const OURS = 'nvidia-virtual/';

/** Everything that a support engineer needs and may see. */
export async function collectBundle(options: BundleOptions): Promise<Entry[]> {
  const { reader, state } = options;
  const secrets = await reader.list<V1Secret>(`/api/v1/namespaces/${state.namespace}/secrets`);
  const redaction = new Redaction(secrets);
  const diagnoses = diagnose(state);
  const json = (name: string, value: unknown): Entry => [
    name,
    `${JSON.stringify(redaction.object(value), undefined, 2)}\n`,
  ];
  const objects = await readObjects(reader, state);
  const logs = await readLogs(reader, state, diagnoses);
  return [
    ['README.txt', readme(state, secrets.length > 0)],
    ['doctor.txt', redaction.text(`${diagnosisLines(diagnoses, (text) => text).join('\n')}\n`)],
    json('versions.json', {
      kubernetes: state.kubernetes,
      nvidiaVirtual: state.version,
      plugin: options.plugin,
    }),
    ...objects.map(([name, items]) => json(`objects/${name}.json`, items)),
    ...logs.map(([name, text]): Entry => [name, redaction.text(text)]),
  ];
}

async function readObjects(
  reader: ClusterReader,
  state: ClusterState,
): Promise<[string, readonly unknown[]][]> {
  const { namespace, release } = state;
  const instance = `app.kubernetes.io/instance=${release}`;
  const labelSelector = `app.kubernetes.io/name=nvidia-virtual,${instance}`;
  const lists: Record<string, string> = {
    services: `/api/v1/namespaces/${namespace}/services`,
    configmaps: `/api/v1/namespaces/${namespace}/configmaps`,
    jobs: `/apis/batch/v1/namespaces/${namespace}/jobs`,
    networkpolicies: `/apis/networking.k8s.io/v1/namespaces/${namespace}/networkpolicies`,
    mutatingwebhooks: '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations',
    validatingwebhooks: '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations',
    clusterroles: '/apis/rbac.authorization.k8s.io/v1/clusterroles',
  };
  const found: [string, readonly unknown[]][] = [
    ['daemonsets', state.daemonSets],
    ['workloads', state.workloads],
    ['pods', state.pods],
    ['events', state.events],
    ['nodes', state.nodes.map(withoutForeignAnnotations)],
    ['apiservices', state.apiService === undefined ? [] : [state.apiService]],
    ['node-events', await nodeEvents(reader)],
    ['podgpuusages', await reader.list(`/apis/${API_VERSION}/podgpuusages`)],
    ['nodegpuusages', await reader.list(`/apis/${API_VERSION}/nodegpuusages`)],
  ];
  for (const [name, path] of Object.entries(lists)) {
    const items = await reader.list<V1ConfigMap>(path, { labelSelector });
    found.push([name, items]);
  }
  return found;
}

function nodeEvents(reader: ClusterReader): Promise<readonly unknown[]> {
  return reader.list('/api/v1/namespaces/default/events', {
    fieldSelector: 'involvedObject.kind=Node',
  });
}

/** Other software may keep anything in its annotations of a node. */
function withoutForeignAnnotations(node: V1Node): V1Node {
  const annotations = Object.fromEntries(
    Object.entries(node.metadata?.annotations ?? {}).filter(([name]) => name.startsWith(OURS)),
  );
  return { ...node, metadata: { ...node.metadata, annotations } };
}

async function readLogs(
  reader: ClusterReader,
  state: ClusterState,
  diagnoses: readonly Diagnosis[],
): Promise<Entry[]> {
  const logs: Entry[] = [];
  for (const pod of podsForLogs(state, diagnoses)) {
    const name = pod.metadata?.name ?? '';
    const { initContainers = [], containers = [] } = pod.spec ?? {};
    for (const container of [...initContainers, ...containers])
      for (const previous of ['false', 'true']) {
        const query = new URLSearchParams({ ...LOG_LIMITS, container: container.name, previous });
        const path = `/api/v1/namespaces/${state.namespace}/pods/${name}/log?${query}`;
        const text = await reader.log(path);
        const file = `logs/${name}/${container.name}${previous === 'true' ? '.previous' : ''}.log`;
        if (text) logs.push([file, text]);
      }
  }
  return logs;
}

function podsForLogs({ pods }: ClusterState, diagnoses: readonly Diagnosis[]): V1Pod[] {
  const ailing = new Set(
    diagnoses.filter(({ problems }) => problems.length > 0).map(({ subject }) => subject),
  );
  const onNodes = pods.filter(({ metadata }) =>
    metadata?.ownerReferences?.some(({ kind }) => kind === 'DaemonSet'),
  );
  const urgency = ({ spec }: V1Pod) => (ailing.has(`node ${spec?.nodeName}`) ? 0 : 1);
  return [
    ...pods.filter((pod) => !onNodes.includes(pod)),
    ...onNodes.toSorted((a, b) => urgency(a) - urgency(b)).slice(0, MOST_NODES),
  ];
}

function readme({ unseen }: ClusterState, knewSecrets: boolean): string {
  return [
    'Support archive of nvidia-virtual, made by `kubectl gpu-usage bundle`.',
    '',
    'doctor.txt      what is wrong, and the command that repairs it',
    'versions.json   versions of Kubernetes, nvidia-virtual and the plugin',
    'objects/        objects and events of the release; its nodes; usage of pods and nodes',
    `logs/           logs of its pods, of at most ${MOST_NODES} nodes`,
    '',
    'REDACTED stands for what looks like a password, a token or a key.',
    knewSecrets
      ? 'The content of all Secrets of the namespace was replaced too, wherever it appeared.'
      : 'Secrets of the namespace could not be read, so their content was not searched for.',
    'Secrets themselves are not in the archive.',
    ...(unseen.length > 0 ? ['', ...unseen] : []),
    '',
  ].join('\n');
}
