import { readFileSync } from 'node:fs';
import path from 'node:path';
import { metricsPage } from './page.js';

test('docs/metrics.md is current: run `node gpu-proxy/dist/pages.js`', () => {
  const document = path.resolve(import.meta.dirname, '../../../docs/metrics.md');
  expect(readFileSync(document, 'utf8')).toBe(metricsPage());
});
