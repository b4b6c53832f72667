import { expect, test } from '@jest/globals';
import { readNeeds, reasonsAgainst } from './elf.js';

test('readNeeds() reads libraries and versions from a file', async () => {
  const { libraries, versions } = await readNeeds(process.execPath);
  expect(libraries).toContain('libc.so.6');
  expect(versions).toContain('GLIBC_2.2.5');
});

test('reasonsAgainst() accepts only the libraries of glibc in an old enough version', () => {
  const needs = {
    libraries: ['libc.so.6', 'libm.so.6', 'libstdc++.so.6'],
    versions: ['GLIBC_2.2.5', 'GLIBC_2.17', 'GLIBC_2.18', 'CXXABI_1.3'],
  };
  expect(reasonsAgainst(needs, [2, 17])).toEqual([
    'it needs libstdc++.so.6',
    'it needs GLIBC_2.18',
    'it needs CXXABI_1.3',
  ]);
});
