import type {
  CoreV1Event,
  V1APIService,
  V1DaemonSet,
  V1Deployment,
  V1Node,
  V1Pod,
  V1StatefulSet,
} from '@kubernetes/client-node';
import { API_VERSION } from '@nvidia-virtual/usage-api/resources';
import { KubectlError, PluginError } from '../errors.js';
import type { Kubectl } from '../kubectl.js';

/** The objects of the cluster that the doctor reads. */
export interface ClusterState {
  readonly kubernetes: string;
  readonly namespace: string;
  readonly release: string;
  /** Version of nvidia-virtual. */
  readonly version: string;
  /** DaemonSets of the nodes: one for each profile, and one for all other nodes. */
  readonly daemonSets: readonly V1DaemonSet[];
  readonly workloads: readonly (V1Deployment | V1StatefulSet)[];
  /** All pods of the release. */
  readonly pods: readonly V1Pod[];
  /** Events of the namespace. Tenants can write none there. */
  readonly events: readonly CoreV1Event[];
  readonly nodes: readonly V1Node[];
  /** Undefined: the usage API is off. */
  readonly apiService: V1APIService | undefined;
  /** Sentences about what the user may not read. */
  readonly unseen: readonly string[];
}

const LABELS = 'app.kubernetes.io/name=nvidia-virtual';
const [GROUP = '', VERSION = ''] = API_VERSION.split('/');

/** Reads with the rights of the user. What is forbidden is left out and reported. */
export class ClusterReader {
  readonly #kubectl: Kubectl;
  readonly #unseen: string[] = [];

  constructor(kubectl: Kubectl) {
    this.#kubectl = kubectl;
  }

  /**
   * @param namespace of the release. Undefined: it is searched in all namespaces.
   * @throws PluginError NO_RELEASE, KubectlError
   */
  async read(namespace: string | undefined): Promise<ClusterState> {
    const daemonSets = await this.#findDaemonSets(namespace);
    const { namespace: place = '', labels = {} } = daemonSets[0].metadata ?? {};
    const release = labels['app.kubernetes.io/instance'] ?? '';
    const ours = { labelSelector: `${LABELS},app.kubernetes.io/instance=${release}` };
    const apps = `/apis/apps/v1/namespaces/${place}`;
    const [{ gitVersion }, deployments, statefulSets, pods, events, nodes, apiService] =
      await Promise.all([
        this.#object<{ gitVersion: string }>('/version').then(
          (found) => found ?? { gitVersion: 'unknown' },
        ),
        this.list<V1Deployment>(`${apps}/deployments`, ours),
        this.list<V1StatefulSet>(`${apps}/statefulsets`, ours),
        this.list<V1Pod>(`/api/v1/namespaces/${place}/pods`, ours),
        this.list<CoreV1Event>(`/api/v1/namespaces/${place}/events`),
        this.list<V1Node>('/api/v1/nodes'),
        this.#object<V1APIService>(
          `/apis/apiregistration.k8s.io/v1/apiservices/${VERSION}.${GROUP}`,
        ),
      ]);
    return {
      kubernetes: gitVersion,
      namespace: place,
      release,
      version: labels['app.kubernetes.io/version'] ?? 'unknown',
      daemonSets,
      workloads: [...deployments, ...statefulSets],
      pods,
      events,
      nodes,
      apiService,
      unseen: this.#unseen,
    };
  }

  /** Empty if the user may not list them. */
  async list<T>(path: string, query: Readonly<Record<string, string>> = {}): Promise<readonly T[]> {
    const parameters = new URLSearchParams(query).toString();
    const list = await this.#object<{ items: readonly T[] }>(
      parameters === '' ? path : `${path}?${parameters}`,
    );
    return list?.items ?? [];
  }

  /** The log of a container. Undefined if there is none, or if its node does not answer. */
  async log(path: string): Promise<string | undefined> {
    try {
      return await this.#text(path);
    } catch (error) {
      if (!(error instanceof KubectlError)) throw error;
      this.#unseen.push(`Not seen: ${error.message.split('\n').at(-1)}`);
      return undefined;
    }
  }

  /** Undefined if it does not exist, or if the user may not read it. */
  async #text(path: string): Promise<string | undefined> {
    try {
      return await this.#kubectl.get(path);
    } catch (error) {
      if (!(error instanceof KubectlError) || error.reason === undefined) throw error;
      if (error.reason === 'Forbidden') this.#unseen.push(`Not seen: ${error.answer}`);
      return undefined;
    }
  }

  async #object<T>(path: string): Promise<T | undefined> {
    const text = await this.#text(path);
    return text === undefined ? undefined : (JSON.parse(text) as T);
  }

  /** @returns those of one release */
  async #findDaemonSets(namespace: string | undefined): Promise<[V1DaemonSet, ...V1DaemonSet[]]> {
    const place = namespace === undefined ? '' : `namespaces/${encodeURIComponent(namespace)}/`;
    const [first, ...more] = await this.list<V1DaemonSet>(`/apis/apps/v1/${place}daemonsets`, {
      labelSelector: `${LABELS},app.kubernetes.io/component=node`,
    });
    const where = namespace === undefined ? 'the cluster' : `namespace ${namespace}`;
    if (first === undefined) throw new PluginError('NO_RELEASE', { where });
    if (more.every((other) => releaseOf(other) === releaseOf(first))) return [first, ...more];
    const namespaces = [first, ...more].map(({ metadata }) => metadata?.namespace);
    throw new PluginError('SEVERAL_RELEASES', {
      where,
      namespaces: [...new Set(namespaces)].join(', '),
    });
  }
}

function releaseOf({ metadata }: V1DaemonSet): string {
  return `${metadata?.namespace} ${metadata?.labels?.['app.kubernetes.io/instance']}`;
}
