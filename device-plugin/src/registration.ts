import { statSync } from 'node:fs';
import path from 'node:path';
import { type CallOptions, type Client, credentials, type ServiceError } from '@grpc/grpc-js';
import { RESOURCE } from '@nvidia-virtual/kube-common/names';
import { whyNotServed } from '@nvidia-virtual/service/socket';
import { type Endpoint, OPTIONS } from './endpoint.js';
import { PluginError } from './errors.js';
import {
  KUBELET_SOCKET,
  loadDevicePluginProtocol,
  PROTOCOL_VERSION,
  type RegisterRequest,
} from './protocol.js';

const PATIENCE_MS = 5000;

type Registration = Client & {
  register(
    request: RegisterRequest,
    options: CallOptions,
    callback: (error: ServiceError | null) => void,
  ): void;
};

/**
 * Identifies a start of the kubelet by its socket, which is recreated each time, possibly with the
 * same inode. Undefined while there is no socket.
 */
export function kubeletStart(directory: string): string | undefined {
  const socket = statSync(path.join(directory, KUBELET_SOCKET), {
    bigint: true,
    throwIfNoEntry: false,
  });
  return socket && `${socket.dev} ${socket.ino} ${socket.ctimeNs}`;
}

/** Registers an endpoint with the kubelet. @throws PluginError KUBELET_NOT_SERVING */
export async function register(
  directory: string,
  endpoint: Pick<Endpoint, 'name' | 'there'>,
): Promise<void> {
  const socket = path.join(directory, KUBELET_SOCKET);
  // Check the kubelet's socket before ours: a starting kubelet removes our socket, then listens. If
  // a missing socket is registered, the kubelet blocks for seconds.
  const reason =
    (await whyNotServed(socket)) ??
    (endpoint.there ? undefined : 'the device plugin is still starting');
  if (reason !== undefined)
    throw new PluginError('KUBELET_NOT_SERVING', { resource: RESOURCE, socket, reason });
  const Service = loadDevicePluginProtocol().Registration;
  const kubelet = new Service(
    `unix:${socket}`,
    credentials.createInsecure(),
  ) as unknown as Registration;
  const request = {
    version: PROTOCOL_VERSION,
    endpoint: endpoint.name,
    resourceName: RESOURCE,
    options: OPTIONS,
  };
  try {
    await new Promise<void>((resolve, reject) =>
      kubelet.register(request, { deadline: Date.now() + PATIENCE_MS }, (error) =>
        error ? reject(error) : resolve(),
      ),
    );
  } catch (error) {
    throw new PluginError('KUBELET_NOT_SERVING', {
      resource: RESOURCE,
      socket,
      reason: (error as ServiceError).details,
    });
  } finally {
    kubelet.close();
  }
}
