import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { runCommand } from '@nvidia-virtual/toolchain/command';
import { buildKubernetesTools, kubernetesTool } from '@nvidia-virtual/toolchain/kubernetes-tools';
import { REPOSITORY } from '@nvidia-virtual/toolchain/repository';
import { parseAllDocuments, stringify } from 'yaml';

export const CHART = path.join(REPOSITORY, 'charts', 'nvidia-virtual');

/** The fields of an object that tests read. */
// biome-ignore lint/suspicious/noExplicitAny: any kind of object, whose fields a test names
export type KubernetesObject = any;

interface RenderOptions {
  readonly values?: object;
  readonly release?: string;
  readonly namespace?: string;
  readonly version?: string;
  readonly apis?: readonly string[];
}

class RenderError extends Error {}

/** Renders the chart with Helm. @throws RenderError with Helm's message */
export async function render(options: RenderOptions = {}): Promise<Rendered> {
  const {
    release = 'nvidia-virtual',
    namespace = 'nvidia-virtual',
    version = 'v1.36.3',
    apis = [],
  } = options;
  const directory = mkdtempSync(path.join(tmpdir(), 'chart-'));
  try {
    const file = path.join(directory, 'values.yaml');
    writeFileSync(file, stringify(options.values ?? {}));
    const flags = [
      '--namespace',
      namespace,
      '--kube-version',
      version,
      '--values',
      file,
      ...apis.flatMap((api) => ['--api-versions', api]),
    ];
    const { status, output } = await helm('template', release, CHART, ...flags);
    if (status !== 0) throw new RenderError(output);
    return new Rendered(output);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** The real Helm, built from source if missing. */
export async function helm(
  ...args: readonly string[]
): Promise<{ status: number; output: string }> {
  await buildKubernetesTools(['helm']);
  const { status, output } = await runCommand(kubernetesTool('helm'), args);
  // Helm mentions each time that a file of the chart is a link.
  return { status, output: output.replaceAll(/^.*found symbolic link in path.*\n/gm, '') };
}

export class Rendered {
  readonly objects: readonly KubernetesObject[];

  constructor(readonly text: string) {
    this.objects = parseAllDocuments(text).flatMap((document) => document.toJS() ?? []);
  }

  of(kind: string): KubernetesObject[] {
    return this.objects.filter((object) => object.kind === kind);
  }

  has(kind: string, name: string): boolean {
    return this.of(kind).some(({ metadata }) => metadata.name === name);
  }

  find(kind: string, name: string): KubernetesObject {
    const found = this.of(kind).find(({ metadata }) => metadata.name === name);
    if (found === undefined)
      throw new Error(
        `no ${kind} ${name}; there are ${this.of(kind).map(({ metadata }) => metadata.name)}`,
      );
    return found;
  }

  /** Pods of all objects, by the name of their owner. */
  get pods(): Map<string, KubernetesObject> {
    const makers = this.objects.filter(({ kind, spec }) => spec?.template?.spec || kind === 'Pod');
    return new Map(
      makers.map(({ kind, metadata, spec }) => [
        `${kind} ${metadata.name}`,
        kind === 'Pod' ? spec : spec.template.spec,
      ]),
    );
  }
}

/** The environment variables of a container. */
export function environmentOf(container: KubernetesObject): Record<string, unknown> {
  return Object.fromEntries(
    (container.env ?? []).map((one: KubernetesObject) => [one.name, one.value ?? one.valueFrom]),
  );
}

/** Init containers, and then the others. */
export function containersOf(pod: KubernetesObject): KubernetesObject[] {
  return [...(pod.initContainers ?? []), ...pod.containers];
}

export function containerOf(pod: KubernetesObject, name: string): KubernetesObject {
  return containersOf(pod).find((container) => container.name === name);
}
