import type { V1PodList } from '@kubernetes/client-node';
import type { ApiServer } from '@nvidia-virtual/kubernetes/api-server';
import { daemonSetState } from '@nvidia-virtual/kubernetes/daemon-set';

export interface ReleaseOptions {
  readonly api: ApiServer;
  readonly namespace: string;
  /** Whose pods are device plugin and gpu-proxy. */
  readonly daemonSet: string;
  readonly node: string;
}

/** What serves this node, as the API server knows it: a pod that only starts holds nothing here that could be seen. */
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

  /** Who is still here, or may come back; undefined: nobody. @throws ApiError */
  async whoIsHere(): Promise<string | undefined> {
    const { api, namespace, daemonSet, node } = this.#options;
    if ((await daemonSetState(api, namespace, daemonSet)) !== 'gone') return `the DaemonSet ${namespace}/${daemonSet}`;
    const query = { fieldSelector: `spec.nodeName=${node}` };
    const { items } = await api.request<V1PodList>({ path: `/api/v1/namespaces/${namespace}/pods`, query });
    const left = items.find(({ metadata }) =>
      metadata?.ownerReferences?.some(({ kind, name }) => kind === 'DaemonSet' && name === daemonSet),
    );
    return left && `pod ${namespace}/${left.metadata?.name}`;
  }
}
