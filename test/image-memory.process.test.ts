import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { cudaHome } from './conformance/builds.js';
import { REPOSITORY } from './paths.js';

const FACTS = path.join(REPOSITORY, 'build', 'release', 'native', 'worker', 'test', 'image_facts');
const HEADER = '.version 8.0\n.target sm_90\n.address_size 64\n';
const BIG = '.visible .global .b8 x[1048576];';
const PATIENCE = 120_000;

/** Each declares device memory in a way that a simple parser underestimates. */
const TRICKS = {
  'a hexadecimal size': '.global .b8 x[0x100000];',
  'a hexadecimal size with U': '.global .b8 x[0X100000U];',
  'an octal size': '.global .b8 x[04000000];',
  'a binary size': '.global .b8 x[0b100000000000000000000];',
  'several dimensions': '.global .b8 x[16][16][0x1000];',
  'several variables': '.global .b8 x[524288], y[524288];',
  'a vector': '.global .v4 .f32 x[65536];',
  'a comment that begins in a string': `.file 1 "/*"\n${BIG}\n.file 2 "*/"`,
  'a comment that begins in a comment': `/* /* */ ${BIG}`,
  'a comment with an apparent end': `/*/ */ ${BIG}`,
  'a line comment with an apparent continuation': `// \\\n${BIG}`,
  'a line comment in a string': `.file 1 "//" ${BIG}`,
  'a string with a backslash': `.file 1 "\\\\" ${BIG}`,
  'no blanks': '.visible.global.b8 x[1048576];',
  'a definition marked extern': '.extern .global .b8 x[1048576];',
  'a weak definition': '.weak .global .b8 x[1048576];',
  'a common definition': '.common .global .b8 x[1048576];',
  'a managed variable': '.global .attribute(.managed) .b8 x[1048576];',
  'a variable of a kernel':
    '.entry k() { .global .b8 x[1048576]; .reg .b64 a; mov.u64 a, x; st.global.b64 [a], a; ret; }',
  'a variable behind a .loc':
    '.file 1 "a"\n.entry k() { .loc 1 2 3 .global .b8 x[1048576]; .reg .b64 a; mov.u64 a, x; ' +
    'st.global.b64 [a], a; ret; }',
  'an alignment': '.global .align 1048576 .b8 x[64];',
  'an initial value': `.global .b32 x[][1024] = \
{${Array.from({ length: 256 }, () => '{1}').join()}};`,
  constants: '.const .b8 x[0xF000];',
};

/** ptxas accepts each of these, but parsers may differ. */
const UNREADABLE = {
  'a line of a preprocessor': `# 1 "file"\n${BIG}`,
  'a string of two lines': `.file 1 "a\nb"\n${BIG}`,
  'a string that may continue': `.file 1 "a\\"\n${BIG}`,
  'a size beyond 64 bits': '.global .b8 x[18446744073709551680];',
  'a blank in an opcode': '.entry k() { .reg .b64 a; ld .global .u64 a, [a]; ret; }',
};

describe('the memory that the worker counts for a code image', () => {
  let directory: string;
  let bin: string;

  beforeAll(async () => {
    directory = mkdtempSync(path.join(tmpdir(), 'image-memory-'));
    bin = path.join((await cudaHome()) ?? '', 'bin');
  }, PATIENCE);

  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  const file = (name: string) => path.join(directory, name);
  const facts = (name: string) => execFileSync(FACTS, [file(name)], { encoding: 'utf8' }).trim();
  /** Machine code of a text; undefined if ptxas refuses it. */
  const assembled = (text: string) => {
    writeFileSync(file('text.ptx'), HEADER + text);
    const { status } = spawnSync(path.join(bin, 'ptxas'), [
      '-arch=sm_90',
      file('text.ptx'),
      '-o',
      file('text.cubin'),
    ]);
    return status === 0 ? readFileSync(file('text.cubin')) : undefined;
  };

  for (const [what, text] of Object.entries(TRICKS)) {
    test(`is at least what ptxas allocates: ${what}`, () => {
      const taken = variableBytes(assembled(text) ?? Buffer.alloc(64));
      expect(taken).toBeGreaterThan(0);
      expect(Number(facts('text.ptx'))).toBeGreaterThanOrEqual(taken);
      expect(Number(facts('text.cubin'))).toBeGreaterThanOrEqual(taken);
    });
  }

  for (const [what, text] of Object.entries(UNREADABLE)) {
    test(`is refused if ptxas accepts an unusual text: ${what}`, () => {
      expect(assembled(text)).toBeDefined();
      expect(facts('text.ptx')).toMatch(/^refused PTX line \d+: /);
    });
  }

  for (const options of [
    ['-ptx'],
    ['-ptx', '-G'],
    ['-ptx', '-lineinfo'],
    ['-cubin', '-arch=sm_75'],
    ['-cubin', '-arch=sm_90', '-G'],
    ['-cubin', '-arch=sm_100'],
    ['-cubin', '-arch=sm_90', '-rdc=true'],
    ...['none', 'speed', 'balance', 'size'].flatMap((mode) => [
      [
        '--fatbin',
        `--compress-mode=${mode}`,
        '-gencode',
        'arch=compute_90,code=[sm_90,compute_90]',
        '-gencode',
        'arch=compute_100f,code=sm_100f',
      ],
      [
        '--fatbin',
        `--compress-mode=${mode}`,
        '-rdc=true',
        '-lineinfo',
        '-gencode',
        'arch=compute_90,code=[sm_90,compute_90,lto_90]',
      ],
    ]),
  ]) {
    test(
      `is known for the output of nvcc: ${options.join(' ')}`,
      () => {
        writeFileSync(
          file('source.cu'),
          `#include <cstdio>
          __device__ int variable[100000]; __device__ int given[3] = {1, 2, 3}; __constant__ \
float constant[10]; __managed__ int managed;
          __device__ __align__(4096) char aligned[10];
          __global__ void kernel(float *x) {
            __shared__ float shared[100];
            shared[threadIdx.x] = x[0] + variable[5] + given[1] + constant[2] + managed + \
aligned[3];
            __syncthreads();
            if (x[1] > 1) printf("%f", shared[3]), x[0] = *(float *)malloc(4);
          }`,
        );
        execFileSync(path.join(bin, 'nvcc'), [...options, file('source.cu'), '-o', file('image')]);
        const [bytes, ...sentence] = facts('image').split(' ');
        expect(sentence).toEqual([]);
        expect(Number(bytes)).toBeGreaterThanOrEqual(400_000);
        expect(Number(bytes)).toBeLessThan(450_000);
      },
      PATIENCE,
    );
  }
});

/**
 * Bytes of global and constant memory of an ELF file. An alignment counts as far as it exceeds that
 * of any allocation.
 */
function variableBytes(elf: Buffer): number {
  const word = (at: number) => Number(elf.readBigUInt64LE(at));
  const section = (index: number) => word(40) + 64 * index;
  const names = word(section(elf.readUInt16LE(62)) + 24);
  let bytes = 0;
  for (let index = 0; index < elf.readUInt16LE(60); index++) {
    const at = section(index);
    const name = names + elf.readUInt32LE(at);
    const [size, alignment] = [word(at + 32), word(at + 48)];
    // Constant bank 4 has the addresses of variables, for code that needs them.
    if (/^\.nv\.(global|constant3)/.test(elf.toString('latin1', name, elf.indexOf(0, name))))
      bytes += size + Math.max(0, alignment - 512);
  }
  return bytes;
}
