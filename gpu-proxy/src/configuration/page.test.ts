import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { loadConfiguration } from './configuration.js';
import { configurationPage } from './page.js';

const DOCUMENTS = path.resolve(import.meta.dirname, '../../../docs');

test('docs/configuration.md is current: run `node gpu-proxy/dist/pages.js`', () => {
  expect(readFileSync(path.join(DOCUMENTS, 'configuration.md'), 'utf8')).toBe(configurationPage());
});

test('the example on the page is valid', () => {
  const directory = mkdtempSync(path.join(tmpdir(), 'configuration-'));
  try {
    const config = path.join(directory, 'node.yaml');
    writeFileSync(config, /```yaml\n(.*?)```/s.exec(configurationPage())?.[1] ?? '');
    const configuration = loadConfiguration({ flags: { config }, environment: {} });
    expect(configuration).toMatchObject({
      node: 'node-17',
      limits: { sessions: 32 },
      http: { port: 9400 },
      ledger: { username: 'gpu-proxy' },
    });
  } finally {
    rmSync(directory, { recursive: true });
  }
});
