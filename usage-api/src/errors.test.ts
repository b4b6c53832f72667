import { readFileSync } from 'node:fs';
import path from 'node:path';
import { UsageError } from './errors.js';

const DOCUMENT = path.resolve(import.meta.dirname, '../../docs/errors.md');

test('docs/errors.md lists exactly the codes of the usage API, with status and sentence', () => {
  const section =
    /^## What the usage API refuses$(.*?)(?=^## |$(?![\s\S]))/ms.exec(
      readFileSync(DOCUMENT, 'utf8'),
    )?.[1] ?? '';
  const rows = [...section.matchAll(/^\| `([A-Z_]+)` \| (.+) \| HTTP (\d+) \|$/gm)].map(
    ([, ...row]) => row,
  );
  expect(rows).toEqual(
    UsageError.codes.map((code) => [
      code,
      UsageError.template(code),
      String(new UsageError(code).status),
    ]),
  );
});

test('UsageError fills in its template', () => {
  const error = new UsageError('NO_SUCH_PATH', { path: '/x' });
  expect(error.message).toBe(
    'Path /x does not exist. This server serves /apis/usage.nvidia-virtual.io/v1alpha1.',
  );
  expect([error.status, error.reason]).toEqual([404, 'NotFound']);
});
