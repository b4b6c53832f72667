import { isIPv6 } from 'node:net';
import type { KeyPair } from './authority.js';

/** Addresses on which the components listen. */
export interface Place {
  readonly address: string;
  readonly port: number;
  readonly etcdPort: number;
  readonly etcdPeerPort: number;
}

export interface ApiServerFiles {
  readonly directory: string;
  readonly authority: KeyPair;
  readonly server: KeyPair;
  readonly kubeletClient: KeyPair;
  /**
   * Signs certificates of the API server for requests that it passes to an aggregated API in the
   * name of the user.
   */
  readonly frontProxy: KeyPair;
  readonly frontProxyClient: KeyPair;
  readonly serviceAccountKey: string;
}

/** The first address of the Service range is reserved by Kubernetes. */
const SERVICES = { address: '10.96.0.1', range: '10.96.0.0/16' };
const SERVICES_IPV6 = { address: 'fd00:10:96::1', range: 'fd00:10:96::/112' };

/** Addresses of Services: of the family of the API server's own address. */
export function servicesOf({ address }: Pick<Place, 'address'>): typeof SERVICES {
  return isIPv6(address) ? SERVICES_IPV6 : SERVICES;
}

/** With the usual settings of an administrator: RBAC, aggregated APIs, service accounts. */
export function apiServerArguments(
  place: Place,
  files: ApiServerFiles,
  serviceAccounts: boolean,
): string[] {
  return [
    ...[
      '--bind-address',
      place.address,
      '--secure-port',
      String(place.port),
      '--advertise-address',
      place.address,
    ],
    ...['--etcd-servers', `http://127.0.0.1:${place.etcdPort}`, '--cert-dir', files.directory],
    ...[
      '--tls-cert-file',
      files.server.certificateFile,
      '--tls-private-key-file',
      files.server.keyFile,
    ],
    ...['--client-ca-file', files.authority.certificateFile, '--authorization-mode', 'Node,RBAC'],
    ...['--service-cluster-ip-range', servicesOf(place).range, '--allow-privileged'],
    // A reconciler would write its own address. It may be a loopback address, which the API
    // refuses.
    ...['--endpoint-reconciler-type', 'none'],
    ...serviceAccountArguments(files, serviceAccounts),
    ...aggregationArguments(files),
    ...[
      '--kubelet-client-certificate',
      files.kubeletClient.certificateFile,
      '--kubelet-client-key',
      files.kubeletClient.keyFile,
    ],
    // The names of nodes cannot be resolved here.
    ...['--kubelet-preferred-address-types', 'InternalIP'],
  ];
}

/** Without controllers, nothing else creates the default account that each pod needs. */
function serviceAccountArguments({ serviceAccountKey }: ApiServerFiles, wanted: boolean): string[] {
  return [
    ...[
      '--service-account-key-file',
      serviceAccountKey,
      '--service-account-signing-key-file',
      serviceAccountKey,
    ],
    ...['--service-account-issuer', 'https://kubernetes.default.svc'],
    wanted
      ? '--enable-admission-plugins=NodeRestriction'
      : '--disable-admission-plugins=ServiceAccount',
  ];
}

function aggregationArguments({ frontProxy, frontProxyClient }: ApiServerFiles): string[] {
  return [
    // Directly to the endpoints, because the API server's machine need not route Services.
    '--enable-aggregator-routing',
    ...[
      '--requestheader-client-ca-file',
      frontProxy.certificateFile,
      '--requestheader-allowed-names',
      'front-proxy-client',
    ],
    ...[
      '--requestheader-username-headers',
      'X-Remote-User',
      '--requestheader-group-headers',
      'X-Remote-Group',
    ],
    ...['--requestheader-extra-headers-prefix', 'X-Remote-Extra-'],
    ...[
      '--proxy-client-cert-file',
      frontProxyClient.certificateFile,
      '--proxy-client-key-file',
      frontProxyClient.keyFile,
    ],
  ];
}
