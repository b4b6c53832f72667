import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { mustRun } from './command.js';
import { ToolchainError } from './errors.js';
import { goProgram } from './go.js';
import { cacheDirectory, REPOSITORY } from './repository.js';

/**
 * The oldest and the newest release that the chart supports. A go.mod pins each release with its
 * dependencies.
 */
const RELEASES = {
  newest: { version: '1.36.3', module: 'kubernetes' },
  oldest: { version: '1.30.14', module: 'kubernetes-oldest' },
} as const;
/** The release that the tests start. */
const KUBERNETES = chosenRelease(process.env['NVIDIA_VIRTUAL_KUBERNETES'] ?? 'newest');
export const KUBERNETES_VERSION = KUBERNETES.version;
const CONTAINERD_VERSION = '2.4.2';
/** Debian's version supports no volumes in containers with user namespaces. */
const RUNC_VERSION = '1.5.2';
const COREDNS_VERSION = '1.13.2';
const KREW_VERSION = '0.5.0';
const CRANE_VERSION = '0.22.1';
const PROMETHEUS_VERSION = '3.16.0';
/** The last release whose Go module contains its web page, without which it cannot be built. */
const ALERTMANAGER_VERSION = '0.31.1';

type Release = (typeof RELEASES)[keyof typeof RELEASES];

interface Source {
  /** Directory below toolchain/ of a Go module that pins the program and its dependencies. */
  readonly module: string;
  readonly package: string;
  /** Name of the directory in the cache. */
  readonly release: string;
  readonly flags: readonly string[];
  readonly tags?: string;
  readonly cgo?: true;
}

const CONTAINERD = `containerd-${CONTAINERD_VERSION}`;

const CONTAINERD_FLAGS = [
  `-X github.com/containerd/containerd/v2/version.Version=${CONTAINERD_VERSION}`,
];

const SOURCES = {
  etcd: fromKubernetes('go.etcd.io/etcd/server/v3', RELEASES.newest),
  'kube-apiserver': fromKubernetes('k8s.io/kubernetes/cmd/kube-apiserver'),
  'kube-controller-manager': fromKubernetes('k8s.io/kubernetes/cmd/kube-controller-manager'),
  'kube-scheduler': fromKubernetes('k8s.io/kubernetes/cmd/kube-scheduler'),
  'kube-proxy': fromKubernetes('k8s.io/kubernetes/cmd/kube-proxy'),
  kubelet: fromKubernetes('k8s.io/kubernetes/cmd/kubelet'),
  kubectl: fromKubernetes('k8s.io/kubernetes/cmd/kubectl', RELEASES.newest),
  helm: fromKubernetes('helm.sh/helm/v3/cmd/helm', RELEASES.newest),
  containerd: fromContainerd('containerd'),
  'containerd-shim-runc-v2': fromContainerd('containerd-shim-runc-v2'),
  ctr: fromContainerd('ctr'),
  runc: {
    module: 'runc',
    package: 'github.com/opencontainers/runc',
    release: `runc-${RUNC_VERSION}`,
    flags: [],
    tags: 'seccomp',
    cgo: true,
  },
  coredns: { module: 'coredns', package: '.', release: `coredns-${COREDNS_VERSION}`, flags: [] },
  crane: {
    module: 'crane',
    package: 'github.com/google/go-containerregistry/cmd/crane',
    release: `crane-${CRANE_VERSION}`,
    flags: [],
  },
  krew: {
    module: 'krew',
    package: 'sigs.k8s.io/krew/cmd/krew',
    release: `krew-${KREW_VERSION}`,
    flags: [],
  },
  prometheus: fromPrometheus('prometheus'),
  promtool: fromPrometheus('promtool'),
  alertmanager: {
    module: 'alertmanager',
    package: 'github.com/prometheus/alertmanager/cmd/alertmanager',
    release: `alertmanager-${ALERTMANAGER_VERSION}`,
    flags: [],
  },
} satisfies Record<string, Source>;

type KubernetesTool = keyof typeof SOURCES;

/** Tools for a cluster without nodes: API server and etcd. */
export const API_TOOLS: readonly KubernetesTool[] = [
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kubectl',
];

/** Additional tools for a cluster with nodes. */
export const NODE_TOOLS: readonly KubernetesTool[] = [
  ...API_TOOLS,
  'kubelet',
  'kube-proxy',
  'coredns',
  'helm',
];
export const CONTAINERD_TOOLS: readonly KubernetesTool[] = [
  'containerd',
  'containerd-shim-runc-v2',
  'ctr',
  'runc',
];
/** Tools that evaluate alerts and notify: 8 minutes to build on two cores, once. */
export const MONITORING_TOOLS: readonly KubernetesTool[] = [
  'prometheus',
  'promtool',
  'alertmanager',
];

/** Path of a tool, built or not. */
export function kubernetesTool(name: KubernetesTool): string {
  return path.join(cacheDirectory(), SOURCES[name].release, 'bin', name);
}

/**
 * Builds missing tools from upstream sources into the cache: 15 minutes on two cores, once.
 */
export async function buildKubernetesTools(
  names: readonly KubernetesTool[],
  say: (line: string) => void = () => {},
): Promise<void> {
  const missing = names.filter((name) => !existsSync(kubernetesTool(name)));
  const go = missing.length > 0 ? await goProgram(say) : '';
  for (const [index, name] of missing.entries()) {
    say(
      `Building ${name} of ${SOURCES[name].release} (${index + 1} of ${missing.length}, ` +
        `once) into ${path.dirname(kubernetesTool(name))}`,
    );
    await build(name, go);
  }
}

/**
 * Builds into a temporary file and renames it, so that concurrent builds do not interfere.
 */
async function build(name: KubernetesTool, go: string): Promise<void> {
  const tool = kubernetesTool(name);
  const unfinished = `${tool}.${process.pid}`;
  const { module, package: what, flags, tags, cgo }: Source = SOURCES[name];
  mkdirSync(path.dirname(tool), { recursive: true });
  const args = [
    'build',
    '-buildvcs=false',
    '-trimpath',
    ...(tags === undefined ? [] : ['-tags', tags]),
    '-ldflags',
    ['-s', '-w', ...flags].join(' '),
    '-o',
    unfinished,
    what,
  ];
  try {
    await mustRun(go, args, {
      cwd: path.join(REPOSITORY, 'toolchain', module),
      env: { ...process.env, CGO_ENABLED: cgo === undefined ? '0' : '1' },
      failure: `${name} could not be built`,
    });
    renameSync(unfinished, tool);
  } finally {
    rmSync(unfinished, { force: true });
  }
}

function chosenRelease(name: string): Release {
  if (Object.hasOwn(RELEASES, name)) return RELEASES[name as keyof typeof RELEASES];
  throw new ToolchainError(
    `NVIDIA_VIRTUAL_KUBERNETES is ${JSON.stringify(name)}. It may be one of: ` +
      `${Object.keys(RELEASES).join(', ')}.`,
  );
}

/** Sets the version: with the default v0.0.0, Kubernetes components refuse each other. */
function fromKubernetes(what: string, { version, module }: Release = KUBERNETES): Source {
  const [major, minor] = version.split('.');
  const named = { gitVersion: `v${version}`, gitMajor: major, gitMinor: minor };
  const flags = Object.entries(named).map(
    ([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`,
  );
  return { module, package: what, release: `kubernetes-${version}`, flags };
}

/** Without service discovery: its clients of clouds are most of the code, and tests name hosts. */
function fromPrometheus(name: string): Source {
  return {
    module: 'prometheus',
    package: `github.com/prometheus/prometheus/cmd/${name}`,
    release: `prometheus-${PROMETHEUS_VERSION}`,
    flags: [],
    tags: 'remove_all_sd',
  };
}

function fromContainerd(name: string): Source {
  const what = `github.com/containerd/containerd/v2/cmd/${name}`;
  return { module: 'containerd', package: what, release: CONTAINERD, flags: CONTAINERD_FLAGS };
}
