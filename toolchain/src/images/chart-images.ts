import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parse } from 'yaml';
import { REPOSITORY } from '../repository.js';

/** Images of the chart if no value is set. */
interface ChartImages {
  /** Registry of our own images. */
  readonly registry: string;
  /** Tag of our own images. */
  readonly tag: string;
  /** Names of our own images, without registry and tag. */
  readonly node: string;
  readonly control: string;
  /** Without a tag, which is the version of the cluster. */
  readonly kubeScheduler: string;
  /** With a tag. */
  readonly redis: string;
}

/** Reads the chart's defaults, so that no second list of images can differ. */
export function chartImages(): ChartImages {
  const chart = path.join(REPOSITORY, 'charts', 'nvidia-virtual');
  const read = (file: string) => parse(readFileSync(path.join(chart, file), 'utf8'));
  return { ...read('values.yaml').images, tag: read('Chart.yaml').appVersion };
}
