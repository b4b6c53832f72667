import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { resolveUnder } from './links.js';

let root: string;
beforeEach(() => {
  root = makePrivateDirectory();
  mkdirSync(path.join(root, 'store/driver/lib'), { recursive: true });
  writeFileSync(path.join(root, 'store/driver/lib/libcuda.so.580'), '');
  symlinkSync('libcuda.so.580', path.join(root, 'store/driver/lib/libcuda.so.1'));
});
afterEach(() => removePrivateDirectory(root));

test('resolveUnder() follows absolute links of directories and files under the root', () => {
  mkdirSync(path.join(root, 'run/lib'), { recursive: true });
  symlinkSync('/store/driver', path.join(root, 'run/driver'));
  symlinkSync('/run/driver/lib/libcuda.so.1', path.join(root, 'run/lib/libcuda.so.1'));
  symlinkSync('../../../../../run/driver/./lib', path.join(root, 'run/out'));
  const real = '/store/driver/lib/libcuda.so.580';
  expect(resolveUnder(root, '/run/driver/lib/libcuda.so.1')).toBe(real);
  expect(resolveUnder(root, '/run/lib/libcuda.so.1')).toBe(real);
  expect(resolveUnder(root, '/run/out/libcuda.so.1')).toBe(real);
  expect(resolveUnder(root, real)).toBe(real);
  expect(resolveUnder(root, '/')).toBe('/');
});

test('resolveUnder() finds nothing behind links to nowhere and links in a circle', () => {
  symlinkSync('/etc/passwd', path.join(root, 'passwd'));
  symlinkSync('/circle', path.join(root, 'circle'));
  expect(resolveUnder(root, '/passwd')).toBeUndefined();
  expect(resolveUnder(root, '/circle')).toBeUndefined();
  expect(resolveUnder(root, '/store/none')).toBeUndefined();
});
