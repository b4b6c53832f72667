import path from 'node:path';
import { loadPackageDefinition, type ServiceClientConstructor } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';

/**
 * The messages of proto/device_plugin.proto as JavaScript has them; what each means stands there.
 */

type Health = 'Healthy' | 'Unhealthy';

export interface Device {
  readonly ID: string;
  readonly health: Health;
}

export interface Mount {
  readonly containerPath: string;
  readonly hostPath: string;
  readonly readOnly: boolean;
}

export interface ContainerAllocateResponse {
  readonly envs: Readonly<Record<string, string>>;
  readonly mounts: readonly Mount[];
}

export interface AllocateRequest {
  readonly containerRequests: readonly { readonly devicesIds: readonly string[] }[];
}

export interface AllocateResponse {
  readonly containerResponses: readonly ContainerAllocateResponse[];
}

export interface RegisterRequest {
  readonly version: string;
  readonly endpoint: string;
  readonly resourceName: string;
  readonly options: DevicePluginOptions;
}

export interface DevicePluginOptions {
  readonly preStartRequired: boolean;
  readonly getPreferredAllocationAvailable: boolean;
}

export interface ContainerDevices {
  readonly resourceName: string;
  readonly deviceIds: readonly string[];
}

export const PROTOCOL_VERSION = 'v1beta1';

/** Name of the kubelet's socket in the directory of plugins. */
export const KUBELET_SOCKET = 'kubelet.sock';

interface DevicePluginPackage {
  readonly DevicePlugin: ServiceClientConstructor;
  readonly Registration: ServiceClientConstructor;
}

const PROTO = path.resolve(import.meta.dirname, '../proto/device_plugin.proto');

/** Loads both sides of the protocol, because tests act as the kubelet. */
export function loadDevicePluginProtocol(): DevicePluginPackage {
  const definition = loadPackageDefinition(loadSync(PROTO, { defaults: true }));
  return (definition as unknown as { v1beta1: DevicePluginPackage }).v1beta1;
}
