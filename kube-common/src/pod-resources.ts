import path from 'node:path';
import { loadPackageDefinition, type ServiceClientConstructor } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';

const PROTO = path.resolve(import.meta.dirname, '../proto/pod_resources.proto');

/** Definition of the kubelet's pod-resources service. Tests implement a server with it. */
export function loadPodResources(): ServiceClientConstructor {
  const definition = loadPackageDefinition(loadSync(PROTO, { defaults: true }));
  return (definition['v1'] as unknown as { PodResourcesLister: ServiceClientConstructor })
    .PodResourcesLister;
}
