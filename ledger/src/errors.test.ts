import { readFileSync } from 'node:fs';
import path from 'node:path';
import { LedgerError } from './errors.js';

test('README.md lists exactly the codes of LedgerError, with sentences', () => {
  const page = readFileSync(path.resolve(import.meta.dirname, '../README.md'), 'utf8');
  const rows = [...page.matchAll(/^\| `([A-Z]+_[A-Z_]+)` \| (.+) \|$/gm)].map(([, ...row]) => row);
  expect(rows).toEqual(LedgerError.codes.map((code) => [code, LedgerError.template(code)]));
});

test('LedgerError fills in its template', () => {
  const error = new LedgerError('NODE_TAKEN', { node: 'gpu-7', end: 'is gone' });
  expect(error.message).toBe(
    'Another machine already keeps the ledger as node gpu-7. This one is left out until the ' +
      'other is gone. Give each machine a name of its own.',
  );
  expect(error.code).toBe('NODE_TAKEN');
});
