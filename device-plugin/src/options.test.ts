import { readFileSync } from 'node:fs';
import path from 'node:path';
import { optionsOf } from '@nvidia-virtual/service/configuration/option';
import { SERVE_OPTIONS } from './options.js';

const DOCUMENT = path.resolve(import.meta.dirname, '../README.md');

test('README.md has every option with its default, and no other', () => {
  const rows = [
    ...readFileSync(DOCUMENT, 'utf8').matchAll(
      /^\| `(--[a-z-]+)`<br>`(NVIDIA_VIRTUAL_\w+)` \| (.+?) \|/gm,
    ),
  ].map(([, ...row]) => row);
  expect(rows).toEqual(
    optionsOf(SERVE_OPTIONS).map(({ flag, variable, option }) => [
      flag,
      variable,
      option.defaultText,
    ]),
  );
});
