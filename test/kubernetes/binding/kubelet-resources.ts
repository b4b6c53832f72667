import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { type handleUnaryCall, Server, ServerCredentials } from '@grpc/grpc-js';
import { RESOURCE } from '@nvidia-virtual/kube-common/names';
import { loadPodResources } from '@nvidia-virtual/kube-common/pod-resources';

/**
 * Stand-in for the kubelet's pod-resources API, over the real protocol, with the test's answers.
 */
export class KubeletResources {
  readonly #root: string;
  readonly #containers = new Map<
    string,
    { namespace: string; pod: string; container: string; slots: readonly string[] }
  >();
  #server: Server | undefined;
  /** Number of requests. */
  asked = 0;

  constructor(kubeletRoot: string) {
    this.#root = kubeletRoot;
  }

  /** Assigns these slots to the container. */
  give(pod: string, container: string, slots: readonly string[], namespace = 'default'): void {
    this.#containers.set(`${namespace}/${pod}/${container}`, { namespace, pod, container, slots });
  }

  take(pod: string, container: string, namespace = 'default'): void {
    this.#containers.delete(`${namespace}/${pod}/${container}`);
  }

  async start(): Promise<void> {
    const directory = path.join(this.#root, 'pod-resources');
    mkdirSync(directory, { recursive: true });
    const server = new Server();
    const list: handleUnaryCall<unknown, unknown> = (_, callback) =>
      callback(null, { podResources: this.#answer() });
    server.addService(loadPodResources().service, { list });
    await new Promise<void>((resolve, reject) =>
      server.bindAsync(
        `unix:${path.join(directory, 'kubelet.sock')}`,
        ServerCredentials.createInsecure(),
        (error) => (error ? reject(error) : resolve()),
      ),
    );
    this.#server = server;
  }

  stop(): void {
    this.#server?.forceShutdown();
    this.#server = undefined;
  }

  #answer() {
    this.asked++;
    return [...this.#containers.values()].map(({ namespace, pod: name, container, slots }) => ({
      ...{ namespace, name },
      containers: [{ name: container, devices: [{ resourceName: RESOURCE, deviceIds: slots }] }],
    }));
  }
}
