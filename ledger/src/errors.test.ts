import { readFileSync } from 'node:fs';
import path from 'node:path';
import { LEDGER_ERROR_CODES, LedgerError, template } from './errors.js';

test('README.md lists every code with its sentence, and no other', () => {
  const page = readFileSync(path.resolve(import.meta.dirname, '../README.md'), 'utf8');
  const rows = [...page.matchAll(/^\| `([A-Z]+_[A-Z_]+)` \| (.+) \|$/gm)].map(([, ...row]) => row);
  expect(rows).toEqual(LEDGER_ERROR_CODES.map((code) => [code, template(code)]));
});

test('a LedgerError fills its sentence in', () => {
  const error = new LedgerError('NODE_SUPERSEDED', { node: 'gpu-7' });
  expect(error.message).toBe('A newer gpu-proxy keeps the ledger of node gpu-7. This one writes no more: stop it.');
  expect(error.code).toBe('NODE_SUPERSEDED');
});
