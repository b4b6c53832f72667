import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { ReleaseError } from './errors.js';

const DOCUMENT = path.resolve(import.meta.dirname, '../../docs/errors.md');

test("docs/errors.md lists exactly the errors of the chart's checks", () => {
  const section =
    /^## What the checks of the chart say$(.*?)(?=^## |$(?![\s\S]))/ms.exec(
      readFileSync(DOCUMENT, 'utf8'),
    )?.[1] ?? '';
  const rows = [...section.matchAll(/^\| `([A-Z_]+)` \| (.+) \|$/gm)].map(([, ...row]) => row);
  expect(rows).toEqual(ReleaseError.codes.map((code) => [code, ReleaseError.template(code)]));
});
