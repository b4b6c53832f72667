import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import type { V1Secret } from '@kubernetes/client-node';
import { ApiError, type ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { ReleaseError } from './errors.js';

interface RedisPasswordOptions {
  readonly api: ApiServer;
  readonly namespace: string;
  readonly secret: string;
  /** Key of the password in the Secret. */
  readonly key: string;
  /** Make a missing password. False: a missing password is an error. */
  readonly make: boolean;
  /** Path of the configuration file that Redis reads. */
  readonly configuration: string;
}

const [NOT_FOUND, CONFLICT] = [404, 409];
const ATTEMPTS = 5;

/**
 * Writes the password in the Secret into the configuration of Redis. A made password is stored in
 * the Secret first, so that clients find there what Redis accepts.
 * @throws ReleaseError, ApiError
 */
export async function provideRedisPassword(options: RedisPasswordOptions): Promise<void> {
  const password = await readOrMake(options);
  try {
    writeFileSync(options.configuration, `requirepass ${quoted(password)}\n`, { mode: 0o600 });
  } catch (error) {
    throw new ReleaseError('PASSWORD_NOT_WRITTEN', {
      file: options.configuration,
      reason: (error as Error).message,
    });
  }
}

async function readOrMake(options: RedisPasswordOptions): Promise<string> {
  for (let attempt = 1; ; attempt++) {
    const found = await readSecret(options);
    const password = passwordIn(found, options.key);
    if (password !== '') return password;
    if (!options.make)
      throw new ReleaseError('PASSWORD_MISSING', { secret: options.secret, key: options.key });
    try {
      return passwordIn(await put(options, found), options.key);
    } catch (error) {
      // Another writer was first: read its password.
      if (!(error instanceof ApiError) || error.status !== CONFLICT || attempt === ATTEMPTS)
        throw error;
    }
  }
}

async function readSecret({ api, namespace, secret }: RedisPasswordOptions): Promise<V1Secret> {
  try {
    return await api.request<V1Secret>({ path: pathOf(namespace, secret) });
  } catch (error) {
    if (error instanceof ApiError && error.status === NOT_FOUND)
      throw new ReleaseError('SECRET_MISSING', { secret });
    throw error;
  }
}

/** Sends the resourceVersion that was read, so that a concurrent write is not overwritten. */
function put(
  { api, namespace, secret, key }: RedisPasswordOptions,
  found: V1Secret,
): Promise<V1Secret> {
  const data = {
    ...found.data,
    [key]: Buffer.from(randomBytes(32).toString('base64url')).toString('base64'),
  };
  return api.request<V1Secret>({
    method: 'PUT',
    path: pathOf(namespace, secret),
    body: { ...found, data },
  });
}

function pathOf(namespace: string, secret: string): string {
  return `/api/v1/namespaces/${namespace}/secrets/${secret}`;
}

/** The first line of the value, as Redis's clients read it. */
function passwordIn({ data = {} }: V1Secret, key: string): string {
  const text = Buffer.from(data[key] ?? '', 'base64').toString();
  return text.split('\n', 1)[0] ?? '';
}

/** Escapes every byte, because a configuration file of Redis reserves some. */
function quoted(password: string): string {
  const bytes = [...Buffer.from(password)].map(
    (byte) => `\\x${byte.toString(16).padStart(2, '0')}`,
  );
  return `"${bytes.join('')}"`;
}
