import path from 'node:path';
import { loadPackageDefinition, type ServiceClientConstructor } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';

const PROTO = path.resolve(import.meta.dirname, '../../proto/admin.proto');

/** Trailer of a failed call with its error code of docs/errors.md. */
export const ERROR_TRAILER = 'nvidia-virtual-error';

/** Loads the service definition of proto/admin.proto for server and client. */
export function loadAdminService(): ServiceClientConstructor {
  // Bytes and nanoseconds fit a number: 2^53 is 8 PiB, or 104 days.
  const definition = loadSync(PROTO, {
    longs: Number,
    enums: String,
    defaults: true,
    oneofs: true,
  });
  const { nvidia_virtual } = loadPackageDefinition(definition) as unknown as {
    nvidia_virtual: { admin: { v1: { Admin: ServiceClientConstructor } } };
  };
  return nvidia_virtual.admin.v1.Admin;
}
