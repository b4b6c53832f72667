import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { emitCoverage } from './emit/coverage.js';
import { outputs } from './outputs.js';
import { readSpecification } from './specification.js';

const GOLDEN = fileURLToPath(new URL('../golden/', import.meta.url));
const EXPECTED = `${GOLDEN}expected/`;

// After a change of the output:
// node cuda-api/dist/generate.js --specification cuda-api/golden/specification --out
// cuda-api/golden/expected --coverage cuda-api/golden/expected/coverage.md
describe('a specification with every word of the vocabulary', () => {
  const specification = readSpecification(`${GOLDEN}specification`);
  const files = outputs(specification).set('coverage.md', emitCoverage(specification));

  test('generates the expected files and no others', () => {
    expect([...files.keys()].sort()).toEqual(readdirSync(EXPECTED).sort());
  });

  test.each([...files.keys()])('generates %s as expected', (name) => {
    expect(files.get(name)).toBe(readFileSync(EXPECTED + name, 'utf8'));
  });
});

describe('the specification of the driver API', () => {
  const repository = fileURLToPath(new URL('../../', import.meta.url));
  const specification = readSpecification(`${repository}cuda-api`);

  // To update the page: node cuda-api/dist/generate.js --coverage docs/coverage.md
  test('matches docs/coverage.md', () => {
    expect(readFileSync(`${repository}docs/coverage.md`, 'utf8')).toBe(emitCoverage(specification));
  });

  test('describes every function of CUDA 13.0: cuda.h 634, cudaProfiler.h 3, cudaGL.h 18', () => {
    const map = outputs(specification).get('exports.map') ?? '';
    expect(map.match(/^ {4}cu\w+;$/gm)).toHaveLength(655);
  });

  test('has a name and a description for every error of the driver', () => {
    expect(outputs(specification).get('error_texts.h')).not.toContain('""');
  });
});
