import { readFileSync } from 'node:fs';
import path from 'node:path';
import { explain, KubectlError, PluginError } from './errors.js';

const ROOT = path.resolve(import.meta.dirname, '../..');
const SUBJECT = { resource: 'podgpuusages', namespace: 'a', name: 'p' } as const;

test('docs/errors.md lists exactly the codes of kubectl gpu-usage, with sentences', () => {
  const page = readFileSync(path.join(ROOT, 'docs/errors.md'), 'utf8');
  const section =
    /^## What kubectl gpu-usage says$(.*?)(?=^## |$(?![\s\S]))/ms.exec(page)?.[1] ?? '';
  const rows = [...section.matchAll(/^\| `([A-Z_]+)` \| (.+) \|$/gm)].map(([, ...row]) => row);
  expect(rows).toEqual(PluginError.codes.map((code) => [code, PluginError.template(code)]));
});

// As kubectl 1.32 prints them.
test.each([
  ['(Forbidden): x is forbidden: User "anna" cannot list resource "x".', 'FORBIDDEN'],
  ['(NotFound): podgpuusages.usage.nvidia-virtual.io "p" not found: no pod', 'NO_SUCH_POD'],
  ['(NotFound): the server could not find the requested resource', 'NOT_INSTALLED'],
  ['(ServiceUnavailable): the server is currently unable to handle the request', 'API_AWAY'],
  ['(Timeout): the server was unable to return a response in the time allotted', 'API_AWAY'],
])('Error from server %s is %s', (text, code) => {
  expect(explain(new KubectlError(`Error from server ${text}`), SUBJECT)).toMatchObject({ code });
});

test('NotFound for a list means that the API is missing', () => {
  const error = new KubectlError('Error from server (NotFound): nothing is here');
  expect(explain(error, { resource: 'nodegpuusages' })).toMatchObject({ code: 'NOT_INSTALLED' });
});

test.each([
  'error: You must be logged in to the server (Unauthorized)',
  'Error from server (BadRequest): The label selector "=" is invalid.',
  'Error from server: unknown',
  'Unable to connect to the server: context deadline exceeded',
  'The connection to the server a:1 was refused - did you specify the right host or port?',
  'error: context "absent" does not exist',
])('%s is passed on unchanged', (text) => {
  const error = new KubectlError(text);
  expect(explain(error, SUBJECT)).toBe(error);
  expect(error.message).toBe(text);
});

test('an unexpected error is passed on unchanged', () => {
  expect(explain(new TypeError('x'), SUBJECT)).toBeInstanceOf(TypeError);
});
