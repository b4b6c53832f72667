import { parseDpkgStatus } from './image-contents.js';

test('parseDpkgStatus() lists installed packages', () => {
  const installed = (name: string, status: string) =>
    `Package: ${name}\nStatus: ${status}\nArchitecture: amd64\nVersion: 1:2.3-4\nSection: x\n`;
  const text = [
    installed('libc6', 'install ok installed'),
    installed('gone', 'deinstall ok config-files'),
  ].join('\n');
  expect(parseDpkgStatus(text)).toEqual([
    { name: 'libc6', version: '1:2.3-4', architecture: 'amd64' },
  ]);
});
