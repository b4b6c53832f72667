import { readFileSync } from 'node:fs';
import type { ApiCredentials, ApiTarget } from './api-client.js';
import { environmentProxy } from './environment-proxy.js';
import { ExecCredentials } from './exec-credentials.js';
import { type ClusterEntry, type Kubeconfig, KubeconfigError, type UserEntry } from './kubeconfig.js';

/** What a command line says against the file. */
export interface KubeconfigOverrides {
  readonly context?: string | undefined;
  readonly cluster?: string | undefined;
  readonly user?: string | undefined;
  readonly server?: string | undefined;
  readonly token?: string | undefined;
  readonly as?: string | undefined;
  readonly asGroup?: readonly string[] | undefined;
  readonly asUid?: string | undefined;
  readonly insecureSkipTlsVerify?: boolean | undefined;
  readonly certificateAuthority?: string | undefined;
  readonly clientCertificate?: string | undefined;
  readonly clientKey?: string | undefined;
  readonly tlsServerName?: string | undefined;
}

/** A name that is nowhere in the files. `what` is context, cluster or user. */
export class KubeconfigNameError extends Error {
  override readonly name = 'KubeconfigNameError';

  constructor(
    readonly what: 'context' | 'cluster' | 'user',
    readonly missing: string,
    readonly known: readonly string[],
  ) {
    super(`no ${what} "${missing}"`);
  }
}

/** Nothing says which cluster is meant. */
export class NoClusterError extends Error {
  override readonly name = 'NoClusterError';
}

/** A proxy of another kind than those through which we go. */
export class ProxyKindError extends Error {
  override readonly name = 'ProxyKindError';

  constructor(
    readonly server: string,
    readonly proxy: string,
  ) {
    super(`${proxy} is no HTTP proxy`);
  }
}

export interface Selected {
  readonly target: ApiTarget;
  /** Of the context; undefined where it has none. */
  readonly namespace: string | undefined;
}

/** @throws KubeconfigNameError, NoClusterError, KubeconfigError, ProxyKindError */
export function selectTarget(config: Kubeconfig, overrides: KubeconfigOverrides, environment: NodeJS.ProcessEnv): Selected {
  const contextName = overrides.context ?? config.currentContext;
  const context = contextName === undefined ? undefined : config.contexts.get(contextName);
  if (contextName !== undefined && !context) throw new KubeconfigNameError('context', contextName, [...config.contexts.keys()]);
  const cluster = applyToCluster(find(config.clusters, 'cluster', overrides.cluster ?? context?.cluster), overrides);
  const user = applyToUser(find(config.users, 'user', overrides.user ?? context?.user), overrides);
  if (!cluster.server) throw new NoClusterError('no cluster is chosen');
  if (!URL.canParse(cluster.server)) throw new KubeconfigError(config.files.join(', '), `"${cluster.server}" is no address of a server`);
  return { target: targetOf(cluster, user, environment), namespace: context?.namespace || undefined };
}

function find<T extends object>(entries: ReadonlyMap<string, T>, what: 'cluster' | 'user', name: string | undefined): T {
  if (!name) return {} as T;
  const entry = entries.get(name);
  if (!entry) throw new KubeconfigNameError(what, name, [...entries.keys()]);
  return entry;
}

function applyToCluster(entry: ClusterEntry, overrides: KubeconfigOverrides): ClusterEntry {
  const { 'certificate-authority-data': data, ...rest } = entry;
  return {
    ...(overrides.certificateAuthority === undefined ? entry : { ...rest, 'certificate-authority': overrides.certificateAuthority }),
    ...(overrides.server === undefined ? {} : { server: overrides.server }),
    ...(overrides.insecureSkipTlsVerify === undefined ? {} : { 'insecure-skip-tls-verify': overrides.insecureSkipTlsVerify }),
    ...(overrides.tlsServerName === undefined ? {} : { 'tls-server-name': overrides.tlsServerName }),
  };
}

/** A credential on the command line replaces those of its kind, and a token every other. */
function applyToUser(entry: UserEntry, overrides: KubeconfigOverrides): UserEntry {
  const { token, clientCertificate, clientKey } = overrides;
  const { exec, tokenFile, 'client-certificate-data': certificate, 'client-key-data': key, ...plain } = entry;
  const kept =
    token === undefined
      ? entry
      : { ...plain, ...(certificate && key ? { 'client-certificate-data': certificate, 'client-key-data': key } : {}) };
  return {
    ...kept,
    ...(token === undefined ? {} : { token }),
    ...(clientCertificate === undefined ? {} : { 'client-certificate': clientCertificate, 'client-certificate-data': '' }),
    ...(clientKey === undefined ? {} : { 'client-key': clientKey, 'client-key-data': '' }),
    ...(overrides.as === undefined ? {} : { as: overrides.as }),
    ...(overrides.asUid === undefined ? {} : { 'as-uid': overrides.asUid }),
    ...(overrides.asGroup === undefined ? {} : { 'as-groups': overrides.asGroup }),
  };
}

function targetOf(cluster: ClusterEntry, user: UserEntry, environment: NodeJS.ProcessEnv): ApiTarget {
  const server = cluster.server as string;
  const ca = fileOrData(cluster['certificate-authority'], cluster['certificate-authority-data']);
  const told = { ...cluster, ...(ca && { 'certificate-authority-data': ca.toString('base64') }) };
  const exec = user.exec && !user.token && !user.tokenFile ? new ExecCredentials(user.exec, told, environment) : undefined;
  const common = { ...clusterTls(cluster, ca), ...userTls(user) };
  let tls: ApiCredentials['tls'] = common;
  return {
    server,
    proxy: proxyOf(cluster, new URL(server), environment),
    prepare: async () => {
      const credential = await exec?.current();
      if (credential?.certificate && tls.cert !== credential.certificate)
        tls = { ...common, cert: credential.certificate, key: credential.key };
      return { tls, headers: { ...authorization(user, credential?.token), ...impersonation(user) } };
    },
  };
}

/** @throws ProxyKindError */
function proxyOf(cluster: ClusterEntry, server: URL, environment: NodeJS.ProcessEnv): string | undefined {
  if (server.protocol !== 'https:') return undefined;
  const proxy = cluster['proxy-url'] || environmentProxy(server, environment);
  if (!proxy || /^https?:\/\/[^/]/.test(proxy)) return proxy;
  // A password in it is nobody's business.
  throw new ProxyKindError(server.origin, proxy.replace(/\/\/.*@/, '//'));
}

function clusterTls(cluster: ClusterEntry, ca: Buffer | undefined): ApiCredentials['tls'] {
  return {
    ...(cluster['insecure-skip-tls-verify'] ? { rejectUnauthorized: false } : ca === undefined ? {} : { ca }),
    ...(cluster['tls-server-name'] ? { servername: cluster['tls-server-name'] } : {}),
  };
}

function userTls(user: UserEntry): ApiCredentials['tls'] {
  const cert = fileOrData(user['client-certificate'], user['client-certificate-data']);
  const key = fileOrData(user['client-key'], user['client-key-data']);
  return cert === undefined || key === undefined ? {} : { cert, key };
}

function authorization(user: UserEntry, execToken: string | undefined): Record<string, string> {
  const token = user.token || (user.tokenFile && readUsed(user.tokenFile).toString('utf8').trim()) || execToken;
  if (token) return { authorization: `Bearer ${token}` };
  if (!user.username) return {};
  return { authorization: `Basic ${Buffer.from(`${user.username}:${user.password ?? ''}`).toString('base64')}` };
}

function impersonation(user: UserEntry): Record<string, string | readonly string[]> {
  return {
    ...(user.as ? { 'impersonate-user': user.as } : {}),
    ...(user['as-uid'] ? { 'impersonate-uid': user['as-uid'] } : {}),
    ...(user['as-groups']?.length ? { 'impersonate-group': user['as-groups'] } : {}),
  };
}

/** What stands in the file itself wins, as with kubectl. */
function fileOrData(file: string | undefined, data: string | undefined): Buffer | undefined {
  if (data) return Buffer.from(data, 'base64');
  return file ? readUsed(file) : undefined;
}

function readUsed(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new KubeconfigError(file, (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'no such file' : (error as Error).message);
  }
}
