import type { V1Secret } from '@kubernetes/client-node';
import { ApiError, type ApiServer } from '../api-server.js';
import { isUsable, isWhole, type Keyring, renew } from './keyring.js';

export interface ObjectName {
  readonly namespace: string;
  readonly name: string;
}

const [CONFLICT, NOT_FOUND] = [409, 404];
const ATTEMPTS = 5;

/**
 * Returns the keyring of a Secret, after renewing it if necessary. The first replica to write
 * wins; the others use its keyring. An empty Secret counts as missing, so a chart may own it.
 * @param notRenewed called if a renewal cannot be written and the former keyring is still usable,
 * which is returned then
 * @throws ApiError
 */
export async function keepKeyring(
  api: ApiServer,
  secret: ObjectName,
  hosts: readonly string[],
  now: Date,
  notRenewed: (error: ApiError) => void,
): Promise<Keyring> {
  for (let attempt = 1; ; attempt++) {
    const found = await read(api, secret);
    const former = found && keyringOf(found);
    const keyring = await renew(former, hosts, now);
    if (keyring === former) return keyring;
    try {
      await write(api, secret, found, keyring);
      return keyring;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.status === CONFLICT && attempt < ATTEMPTS) continue;
      if (!former || !isWhole(former) || !isUsable(former, hosts, now)) throw error;
      notRenewed(error);
      return former;
    }
  }
}

async function read(api: ApiServer, secret: ObjectName): Promise<V1Secret | undefined> {
  try {
    return await api.request<V1Secret>({ path: `${collection(secret)}/${secret.name}` });
  } catch (error) {
    if (error instanceof ApiError && error.status === NOT_FOUND) return undefined;
    throw error;
  }
}

/**
 * Sends the resourceVersion that was read (optimistic concurrency), so that a concurrent write is
 * not overwritten.
 */
async function write(
  api: ApiServer,
  secret: ObjectName,
  found: V1Secret | undefined,
  keyring: Keyring,
): Promise<void> {
  const data = dataOf(keyring);
  if (found === undefined) {
    const body = {
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'Opaque',
      metadata: { name: secret.name, namespace: secret.namespace },
      data,
    };
    await api.request({ method: 'POST', path: collection(secret), body });
  } else {
    await api.request({
      method: 'PUT',
      path: `${collection(secret)}/${secret.name}`,
      body: { ...found, data: { ...found.data, ...data } },
    });
  }
}

function collection({ namespace }: ObjectName): string {
  return `/api/v1/namespaces/${namespace}/secrets`;
}

function keyringOf({ data = {} }: V1Secret): Keyring | undefined {
  const text = (key: string) => Buffer.from(data[key] ?? '', 'base64').toString();
  if (data['ca.crt'] === undefined) return undefined;
  return {
    bundle: text('ca.crt'),
    authorityKey: text('ca.key'),
    serving: { certificate: text('tls.crt'), key: text('tls.key') },
  };
}

export function dataOf({ bundle, authorityKey, serving }: Keyring): Record<string, string> {
  const texts = {
    'ca.crt': bundle,
    'ca.key': authorityKey,
    'tls.crt': serving.certificate,
    'tls.key': serving.key,
  };
  return Object.fromEntries(
    Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString('base64')]),
  );
}
