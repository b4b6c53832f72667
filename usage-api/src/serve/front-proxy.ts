import { X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import { UsageError } from '../errors.js';

/** The user, as given in the API server's request headers. */
export interface User {
  readonly name: string;
  readonly uid: string | undefined;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/**
 * How the API server authenticates itself, and in which headers it names the user: ConfigMap
 * kube-system/extension-apiserver-authentication.
 */
export interface FrontProxy {
  /** CA bundle, PEM. */
  readonly authority: string;
  /** Allowed common names of its certificate. Empty: any certificate that the CA signed. */
  readonly allowedNames: readonly string[];
  readonly usernameHeaders: readonly string[];
  readonly uidHeaders: readonly string[];
  readonly groupHeaders: readonly string[];
  readonly extraHeaderPrefixes: readonly string[];
}

/** Values stay separate per header occurrence, because a group name may contain a comma. */
type Headers = Readonly<NodeJS.Dict<readonly string[]>>;

const ANONYMOUS = 'system:anonymous';
const AUTHENTICATED = 'system:authenticated';

/**
 * @returns undefined while the ConfigMap is incomplete
 * @throws SyntaxError for malformed lists
 */
export function readFrontProxy(
  data: Readonly<Record<string, string>> | undefined,
): FrontProxy | undefined {
  const authority = data?.['requestheader-client-ca-file'];
  if (!data || !authority) return undefined;
  const list = (key: string): string[] => (data[key] ? (JSON.parse(data[key]) as string[]) : []);
  return {
    authority,
    allowedNames: list('requestheader-allowed-names'),
    usernameHeaders: list('requestheader-username-headers'),
    uidHeaders: list('requestheader-uid-headers'),
    groupHeaders: list('requestheader-group-headers'),
    extraHeaderPrefixes: list('requestheader-extra-headers-prefix'),
  };
}

/**
 * Accepts the user headers only with the API server's client certificate, because any peer can send
 * headers. @throws UsageError NOT_THROUGH_API_SERVER
 */
export function authenticate(
  socket: TLSSocket,
  headers: Headers,
  proxy: FrontProxy | undefined,
): User {
  const problem = proxyProblem(socket, proxy);
  if (problem !== undefined || proxy === undefined)
    throw new UsageError('NOT_THROUGH_API_SERVER', { reason: problem ?? '' });
  const name = proxy.usernameHeaders
    .flatMap((header) => valuesOf(headers, header))
    .find((value) => value !== '');
  if (name === undefined)
    throw new UsageError('NOT_THROUGH_API_SERVER', { reason: 'the request names no user' });
  const groups = proxy.groupHeaders.flatMap((header) => valuesOf(headers, header));
  return {
    name,
    uid: proxy.uidHeaders.flatMap((header) => valuesOf(headers, header))[0],
    groups:
      name === ANONYMOUS || groups.includes(AUTHENTICATED) ? groups : [...groups, AUTHENTICATED],
    extra: extraOf(headers, proxy),
  };
}

function proxyProblem(socket: TLSSocket, proxy: FrontProxy | undefined): string | undefined {
  if (!proxy) return 'the certificate authority of the API server is not known yet';
  const certificate = socket.getPeerX509Certificate();
  if (!certificate) return 'the client sent no certificate';
  // The CA may have changed since the handshake.
  if (!socket.authorized || !isSignedBy(certificate, proxy.authority))
    return 'the client certificate is not signed by requestheader-client-ca';
  const name = /^CN=(.*)$/m.exec(certificate.subject)?.[1] ?? '';
  if (proxy.allowedNames.length === 0 || proxy.allowedNames.includes(name)) return undefined;
  return `the client certificate is of "${name}", which requestheader-allowed-names does not list`;
}

/** Signed directly, or by an intermediate that the client sent and the handshake verified. */
function isSignedBy(certificate: X509Certificate, bundle: string): boolean {
  const authorities =
    bundle.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  const known = authorities.map((pem) => new X509Certificate(pem));
  for (let link: X509Certificate | undefined = certificate; link; link = link.issuerCertificate) {
    const here: X509Certificate = link;
    if (known.some((authority) => here.checkIssued(authority) && here.verify(authority.publicKey)))
      return true;
    if (here.checkIssued(here)) return false;
  }
  return false;
}

function valuesOf(headers: Headers, header: string): readonly string[] {
  return headers[header.toLowerCase()] ?? [];
}

function extraOf(
  headers: Headers,
  { extraHeaderPrefixes }: FrontProxy,
): Record<string, readonly string[]> {
  const extra: Record<string, readonly string[]> = {};
  for (const prefix of extraHeaderPrefixes.map((one) => one.toLowerCase())) {
    for (const name of Object.keys(headers)) {
      if (name.startsWith(prefix))
        extra[decodeURIComponent(name.slice(prefix.length))] = valuesOf(headers, name);
    }
  }
  return extra;
}
