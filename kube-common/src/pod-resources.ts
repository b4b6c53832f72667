import path from 'node:path';
import { loadPackageDefinition, type ServiceClientConstructor } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';

const PROTO = path.resolve(import.meta.dirname, '../proto/pod_resources.proto');

/** The service by which the kubelet tells who has which devices; tests serve it themselves. */
export function loadPodResources(): ServiceClientConstructor {
  const definition = loadPackageDefinition(loadSync(PROTO, { defaults: true }));
  return (definition['v1'] as unknown as { PodResourcesLister: ServiceClientConstructor })
    .PodResourcesLister;
}
