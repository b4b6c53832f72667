import { readFileSync } from 'node:fs';
import path from 'node:path';
import { SchedulerError } from './errors.js';

const DOCUMENT = path.resolve(import.meta.dirname, '../../docs/errors.md');

test('docs/errors.md lists every code with its message, and no other', () => {
  const section =
    readFileSync(DOCUMENT, 'utf8')
      .split(/^## /m)
      .find((part) => part.startsWith('What scheduler and webhook say')) ?? '';
  const rows = [...section.matchAll(/^\| `([A-Z_]+)` \| (.+) \|$/gm)].map(([, ...row]) => row);
  expect(rows).toEqual(SchedulerError.codes.map((code) => [code, SchedulerError.template(code)]));
});

test('SchedulerError fills in its message', () => {
  const error = new SchedulerError('POD_GONE', { pod: 'default/one' });
  expect([error.code, error.message]).toEqual([
    'POD_GONE',
    'Pod default/one no longer exists, so it is not bound.',
  ]);
});
