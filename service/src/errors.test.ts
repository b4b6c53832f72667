import { readFileSync } from 'node:fs';
import path from 'node:path';
import { ProxyError, systemReason } from './errors.js';

const DOCUMENT = path.resolve(import.meta.dirname, '../../docs/errors.md');

test('docs/errors.md lists exactly the codes of ProxyError, with exit status and sentence', () => {
  const rows = [
    ...readFileSync(DOCUMENT, 'utf8').matchAll(/^\| `([A-Z_]+)` \| (\d+) \| (.+) \|$/gm),
  ].map(([, ...row]) => row);
  const table = ProxyError.codes.map((code) => [
    code,
    String(new ProxyError(code).exitStatus),
    ProxyError.template(code),
  ]);
  expect(rows).toEqual(table);
});

test('ProxyError fills in its template', () => {
  const error = new ProxyError('SOCKET_BUSY', { path: '/run/x.sock' });
  expect(error.message).toBe(
    'Another gpu-proxy already serves /run/x.sock. Stop it, or choose another --socket.',
  );
  expect([error.code, error.exitStatus]).toEqual(['SOCKET_BUSY', 125]);
});

test('systemReason() returns the message of the system', () => {
  let failure: unknown;
  try {
    readFileSync('/nonexistent/file');
  } catch (error) {
    failure = error;
  }
  expect(systemReason(failure)).toBe('no such file or directory');
  expect(systemReason(new Error('something else'))).toBe('something else');
});
