import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { readIfThere } from '@nvidia-virtual/service/files';
import { cudaHome } from '../conformance/builds.js';
import { REPOSITORY } from '../paths.js';

const SOURCES = path.join(REPOSITORY, 'test', 'fatbin');
const KERNELS = path.join(SOURCES, 'kernels.cu');
/** Outputs of nvcc, which takes longer than everything else here. */
const COMPILED = path.join(REPOSITORY, 'build', 'fatbin');
const MODES = ['none', 'speed', 'balance', 'size'];
const ARCHITECTURES = {
  'one architecture': ['-arch=sm_75'],
  'several architectures': [
    ['-gencode', 'arch=compute_80,code=sm_80'],
    ['-gencode', 'arch=compute_90,code=[sm_90,compute_90]'],
  ].flat(),
  'line information': ['-arch=sm_90', '-lineinfo'],
};
const PATIENCE = 120_000;

describe('what the interposer extracts from the memory of a program', () => {
  let directory: string;
  let nvcc: string;

  beforeAll(async () => {
    directory = mkdtempSync(path.join(tmpdir(), 'fatbin-'));
    mkdirSync(COMPILED, { recursive: true });
    nvcc = path.join(await cudaHome(), 'bin', 'nvcc');
    const image = path.join(REPOSITORY, 'interposer', 'code', 'image.cpp');
    for (const source of [path.join(SOURCES, 'capture.cpp'), image]) {
      run('g++', [
        '-std=c++20',
        `-I${REPOSITORY}`,
        '-c',
        source,
        '-o',
        `${path.basename(source, '.cpp')}.o`,
      ]);
    }
  }, PATIENCE);

  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  const run = (command: string, args: readonly string[]) =>
    execFileSync(command, args, { cwd: directory, encoding: 'utf8' });
  const file = (name: string) => readFileSync(path.resolve(directory, name));

  /** Runs nvcc, unless the same command has made the file of this source. @returns its path */
  const compile = (name: string, args: readonly string[]) => {
    const output = path.join(COMPILED, name);
    const command = [nvcc, ...args, statSync(KERNELS).mtimeMs].join(' ');
    if (readIfThere(`${output}.command`) !== command) {
      rmSync(`${output}.command`, { force: true }); // an incomplete file never counts
      run(nvcc, [...args, '-o', output]);
      writeFileSync(`${output}.command`, command);
    }
    return output;
  };

  /** Links the objects with the stand-in for cudart. @returns the number of registered images */
  const capture = (objects: readonly string[]) => {
    run('g++', [...objects, 'capture.o', 'image.o', '-o', 'program']);
    return Number(run(path.join(directory, 'program'), ['image']));
  };

  for (const mode of MODES) {
    for (const [what, flags] of Object.entries(ARCHITECTURES)) {
      test(
        `equals the output of nvcc --fatbin: --compress-mode=${mode}, ${what}`,
        () => {
          const options = [`--compress-mode=${mode}`, ...flags, KERNELS];
          const name = `${mode}-${what.replaceAll(' ', '-')}`;
          const expected = compile(`${name}.fatbin`, [...options, '--fatbin']);
          expect(capture([compile(`${name}.o`, [...options, '-c'])])).toBe(1);
          expect(file('image.0').equals(file(expected))).toBe(true);
        },
        PATIENCE,
      );
    }
  }

  test(
    'is the linked image and every relocatable one of a program linked on the device',
    () => {
      const object = compile('relocatable.o', ['-rdc=true', '-c', KERNELS]);
      const relocatable = compile('relocatable.fatbin', ['-rdc=true', '--fatbin', KERNELS]);
      const linkedObject = compile('linked.o', ['-dlink', object]);
      const linked = compile('linked.fatbin', ['-dlink', '-fatbin', object]);
      expect(capture([object, linkedObject])).toBe(2);
      expect(file('image.0').equals(file(linked))).toBe(true);
      expect(file('image.1').equals(file(relocatable))).toBe(true);
    },
    PATIENCE,
  );
});
