import { readFileSync } from 'node:fs';
import path from 'node:path';
import { PluginError } from './errors.js';

const DOCUMENT = path.resolve(import.meta.dirname, '../../docs/errors.md');

test('docs/errors.md lists exactly the errors of the device plugin, with messages', () => {
  const section =
    /^## What the device plugin says$(.*?)(?=^## |$(?![\s\S]))/ms.exec(
      readFileSync(DOCUMENT, 'utf8'),
    )?.[1] ?? '';
  const rows = [...section.matchAll(/^\| `([A-Z_]+)` \| (.+) \|$/gm)].map(([, ...row]) => row);
  expect(rows).toEqual(PluginError.codes.map((code) => [code, PluginError.template(code)]));
});

test('a PluginError fills in its message', () => {
  const error = new PluginError('KUBELET_DIRECTORY_MISSING', { directory: '/x' });
  expect(error.message).toBe(
    '/x does not exist. Start the kubelet, or name its root directory by --kubelet-root.',
  );
  expect(error.code).toBe('KUBELET_DIRECTORY_MISSING');
});
