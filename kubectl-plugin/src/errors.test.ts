import { readFileSync } from 'node:fs';
import path from 'node:path';
import { ApiError, ApiUnreachableError } from './cluster/api-client.js';
import { ERROR_CODES, explain, PluginError, template } from './errors.js';
import { VERSION } from './version.js';

const ROOT = path.resolve(import.meta.dirname, '../..');
const SUBJECT = { server: 'https://localhost', resource: 'podgpuusages', namespace: 'a', name: 'p' } as const;

test('docs/errors.md lists every code of kubectl gpu-usage with its sentence, and no other', () => {
  const page = readFileSync(path.join(ROOT, 'docs/errors.md'), 'utf8');
  const section = /^## What kubectl gpu-usage says$(.*?)(?=^## |$(?![\s\S]))/ms.exec(page)?.[1] ?? '';
  const rows = [...section.matchAll(/^\| `([A-Z_]+)` \| (.+) \|$/gm)].map(([, ...row]) => row);
  expect(rows).toEqual(ERROR_CODES.map((code) => [code, template(code)]));
});

test('the version is that of package.json', () => {
  const { version } = JSON.parse(readFileSync(path.join(ROOT, 'kubectl-plugin/package.json'), 'utf8')) as { version: string };
  expect(VERSION).toBe(version);
});

test.each([
  [401, {}, 'NOT_LOGGED_IN'],
  [403, { message: 'x is forbidden' }, 'FORBIDDEN'],
  [404, { reason: 'NotFound' }, 'NO_SUCH_POD'],
  [404, { message: '404 page not found' }, 'NOT_INSTALLED'],
  [503, {}, 'API_AWAY'],
  [400, {}, 'REFUSED'],
])('an answer %i %j is %s', (code, status, expected) => {
  expect(explain(new ApiError(code, status, '/p'), SUBJECT)).toMatchObject({ code: expected });
});

test('nobody there is a sentence, and a defect stays one', () => {
  expect(explain(new ApiUnreachableError('https://localhost', 'no route'), SUBJECT)).toEqual(
    new PluginError('UNREACHABLE', { server: 'https://localhost', reason: 'no route' }),
  );
  expect(explain(new TypeError('x'), SUBJECT)).toBeInstanceOf(TypeError);
});
