import type { V1PodList } from '@kubernetes/client-node';
import type { ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { daemonSetState } from '@nvidia-virtual/kube-common/daemon-set';

interface ReleaseOptions {
  readonly api: ApiServer;
  readonly namespace: string;
  /** The DaemonSet of device plugin and gpu-proxy. */
  readonly daemonSet: string;
  readonly node: string;
}

/**
 * The pods that serve this node, from the API server: a starting pod cannot be detected on the
 * node.
 */
export class Release {
  readonly #options: ReleaseOptions;

  constructor(options: ReleaseOptions) {
    this.#options = options;
  }

  /** @throws ApiError */
  async lives(): Promise<boolean> {
    const { api, namespace, daemonSet } = this.#options;
    return (await daemonSetState(api, namespace, daemonSet)) === 'lives';
  }

  /** The DaemonSet or pod that still serves this node; undefined: none. @throws ApiError */
  async whoIsHere(): Promise<string | undefined> {
    const { api, namespace, daemonSet, node } = this.#options;
    if ((await daemonSetState(api, namespace, daemonSet)) !== 'gone')
      return `the DaemonSet ${namespace}/${daemonSet}`;
    const query = { fieldSelector: `spec.nodeName=${node}` };
    const { items } = await api.request<V1PodList>({
      path: `/api/v1/namespaces/${namespace}/pods`,
      query,
    });
    const left = items.find(({ metadata }) =>
      metadata?.ownerReferences?.some(
        ({ kind, name }) => kind === 'DaemonSet' && name === daemonSet,
      ),
    );
    return left && `pod ${namespace}/${left.metadata?.name}`;
  }
}
