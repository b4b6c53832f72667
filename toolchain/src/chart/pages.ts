import { readFileSync } from 'node:fs';
import path from 'node:path';
import { REPOSITORY } from '../repository.js';
import { valuesPage } from './page.js';
import { valuesSchema } from './schema.js';
import { readValuesFile } from './values-file.js';

const CHART = path.join(REPOSITORY, 'charts', 'nvidia-virtual');

/** The generated files of the chart with their expected text. */
export function chartPages(): { file: string; text: string }[] {
  const sections = readValuesFile(readFileSync(path.join(CHART, 'values.yaml'), 'utf8'));
  return [
    { file: path.join(CHART, 'README.md'), text: valuesPage(sections) },
    { file: path.join(CHART, 'values.schema.json'), text: valuesSchema(sections) },
  ];
}
