import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { readPodRequest } from '@nvidia-virtual/kube-common/pod-request';
import { readValuesFile } from '@nvidia-virtual/toolchain/chart/values-file';
import { REPOSITORY } from '@nvidia-virtual/toolchain/repository';
import { parseAllDocuments } from 'yaml';
import { CHART, type KubernetesObject } from './chart.js';

const SLOT_SIZE = { memory: 2 ** 31, cores: 10 };
const DOCUMENTS = path.join(REPOSITORY, 'docs');
const EXAMPLES = path.join(REPOSITORY, 'examples');
const PAGES = [
  ...readdirSync(DOCUMENTS).filter((name) => name.endsWith('.md')),
  ...['clusters', 'runbooks'].flatMap((directory) =>
    readdirSync(path.join(DOCUMENTS, directory)).map((name) => path.join(directory, name)),
  ),
  '../README.md',
  '../examples/README.md',
  '../charts/nvidia-virtual/README.md',
].map((name) => path.join(DOCUMENTS, name));
const values = readValuesFile(readFileSync(path.join(CHART, 'values.yaml'), 'utf8')).flatMap(
  (section) => section.values,
);
const keys = new Set(values.map(({ key }) => key));
const groups = new Set([...keys].map((key) => key.split('.')[0]));

describe.each(PAGES)('%s', (page) => {
  const text = readFileSync(page, 'utf8');

  test('links only to existing files', () => {
    const links = [...text.matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)].map(
      (match) => match[1] as string,
    );
    expect(links.filter((link) => !existsSync(path.resolve(path.dirname(page), link)))).toEqual([]);
  });

  test('names only values of the chart', () => {
    const named = [...text.matchAll(/(?:`|--set )([a-zA-Z]+(?:\.[a-zA-Z]+)+)(?==|`)/g)].map(
      (match) => match[1] as string,
    );
    const ours = named.filter(
      (name) => groups.has(name.split('.')[0]) && !/\.(yaml|ts|json|md|sock|proto)$/.test(name),
    );
    expect(ours.filter((name) => !keys.has(name))).toEqual([]);
  });
});

test('every pod of the examples is valid', () => {
  const asked: string[] = [];
  for (const file of readdirSync(EXAMPLES).filter((name) => name.endsWith('.yaml'))) {
    const objects = parseAllDocuments(readFileSync(path.join(EXAMPLES, file), 'utf8')).map(
      (one) => one.toJS() as KubernetesObject,
    );
    for (const { kind, metadata, spec } of objects) {
      const pod = kind === 'Pod' ? { metadata, spec } : spec?.template;
      if (pod?.spec.containers === undefined) continue;
      // The API server converts numbers to quantities.
      for (const { resources } of pod.spec.containers)
        if (resources !== undefined)
          resources.limits['nvidia-virtual/gpu'] = String(resources.limits['nvidia-virtual/gpu']);
      expect([file, readPodRequest(pod, SLOT_SIZE)?.containers.length]).toEqual([file, 1]);
      asked.push(file);
    }
  }
  expect(asked).toEqual([
    'deployment.yaml',
    'gang.yaml',
    'memory.yaml',
    'pytorch.yaml',
    'two-pods.yaml',
    'two-pods.yaml',
  ]);
});

test('images of the examples run on driver 550, the oldest that we support', () => {
  const newest = 12; // CUDA's major version of driver 550
  const images = readdirSync(EXAMPLES)
    .filter((name) => name.endsWith('.yaml'))
    .flatMap((name) => [
      ...readFileSync(path.join(EXAMPLES, name), 'utf8').matchAll(/image: (\S+-cuda(\d+)\.\S+)/g),
    ])
    .map(([, image, major]) => ({ image, major: Number(major) }));
  expect(images.length).toBeGreaterThanOrEqual(2);
  expect(images.filter(({ major }) => major > newest)).toEqual([]);
});
