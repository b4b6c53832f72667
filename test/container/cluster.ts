import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import type { V1Pod } from '@kubernetes/client-node';
import { ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { ControlPlane } from '../kubernetes/control-plane.js';

/** Source of the node's pods. */
export interface Cluster {
  readonly kubeconfig: string;
  createPod(pod: V1Pod): Promise<V1Pod>;
  deletePod(name: string): Promise<void>;
  stop(): Promise<void>;
}

const PODS = '/api/v1/namespaces/default/pods';

/** etcd and kube-apiserver. */
export async function realCluster(): Promise<Cluster> {
  const plane = await ControlPlane.start();
  const api = ApiServer.load(plane.adminKubeconfig);
  return {
    kubeconfig: plane.adminKubeconfig,
    createPod: (body) => api.request<V1Pod>({ method: 'POST', path: PODS, body }),
    deletePod: async (name) => {
      await api.request({
        method: 'DELETE',
        path: `${PODS}/${name}`,
        query: { gracePeriodSeconds: 0 },
      });
    },
    stop: async () => {
      api.close();
      await plane.stop();
    },
  };
}

/**
 * Serves only lists and watches of pods, for a machine without kube-apiserver. Such a test covers
 * the GPU's part. gpu-proxy with a real API server is tested elsewhere.
 */
export async function playedCluster(directory: string): Promise<Cluster> {
  const pods = new Map<string, V1Pod>();
  const watches = new Set<ServerResponse>();
  let version = 1;
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost');
    response.setHeader('content-type', 'application/json');
    if (pathname !== '/api/v1/pods')
      response.writeHead(request.method === 'POST' ? 201 : 404).end('{}');
    else if (searchParams.get('watch') === 'true') watches.add(response.writeHead(200));
    else
      response.end(
        JSON.stringify({
          kind: 'PodList',
          metadata: { resourceVersion: String(version) },
          items: [...pods.values()],
        }),
      );
    if (watches.has(response)) response.flushHeaders();
  });
  const tell = (type: string, object: V1Pod) => {
    for (const watch of watches) watch.write(`${JSON.stringify({ type, object })}\n`);
  };
  const stamped = (pod: V1Pod): V1Pod => ({
    ...pod,
    metadata: { uid: randomUUID(), ...pod.metadata, resourceVersion: String(++version) },
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    kubeconfig: writeKubeconfig(directory, server),
    createPod: async (body) => {
      const pod = stamped({ ...body, metadata: { namespace: 'default', ...body.metadata } });
      pods.set(pod.metadata?.name ?? '', pod);
      tell('ADDED', pod);
      return pod;
    },
    deletePod: async (name) => {
      const pod = pods.get(name);
      pods.delete(name);
      if (pod) tell('DELETED', stamped(pod));
    },
    stop: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

function writeKubeconfig(directory: string, server: Server): string {
  const file = path.join(directory, 'kubeconfig');
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const clusters = [
    { name: 'played', cluster: { server: address, 'insecure-skip-tls-verify': true } },
  ];
  const contexts = [{ name: 'played', context: { cluster: 'played', user: 'played' } }];
  writeFileSync(
    file,
    JSON.stringify({
      clusters,
      contexts,
      users: [{ name: 'played', user: {} }],
      'current-context': 'played',
    }),
  );
  return file;
}
