import { runMain } from './errors.js';
import { API_TOOLS, buildKubernetesTools } from './kubernetes-tools.js';
import {
  ensurePrerequisites,
  KUBERNETES_PREREQUISITES,
  TEST_PREREQUISITES,
} from './prerequisites.js';
import {
  ctestSuite,
  fastJestSuite,
  hasTestProgram,
  jestSuite,
  jestSuiteWithKubernetes,
  type Suite,
  testProgram,
} from './suites.js';
import { add, closingLine, NONE, type TestCounts } from './test-counts.js';

/**
 * `npm test`: everything that needs neither a GPU nor Kubernetes, closed by one line with the sum.
 * - Argument `fast`: only the tests that start no other process and take no seconds.
 * - Argument `control-plane`: single parts before a real API server, whose programs are built first
 *   (a quarter of an hour, once).
 */
await runMain(async () => {
  const withControlPlane = process.argv[2] === 'control-plane';
  const isFast = process.argv[2] === 'fast';
  await ensurePrerequisites(
    withControlPlane ? [...TEST_PREREQUISITES, ...KUBERNETES_PREREQUISITES] : TEST_PREREQUISITES,
  );
  // Within a test it would take longer than a test may.
  if (withControlPlane)
    await buildKubernetesTools([...API_TOOLS, 'helm'], (line) => console.log(line));
  let sum = NONE;
  const failed: string[] = [];
  for (const suite of withControlPlane
    ? suitesWithControlPlane()
    : isFast
      ? fastSuites()
      : suites()) {
    const counts = await runSuite(suite);
    if (counts.failed > 0) failed.push(suite.name);
    sum = add(sum, counts);
  }
  if (failed.length > 0) console.log(`\nFailed: ${failed.join(', ')}`);
  console.log(closingLine(sum));
  return sum.failed > 0 ? 1 : 0;
});

function suites(): Suite[] {
  const conformance = hasTestProgram('conformance') ? [testProgram('conformance')] : [];
  return [jestSuite(), ctestSuite('release'), ...conformance];
}

function fastSuites(): Suite[] {
  return [fastJestSuite(), ctestSuite('release', '--label-exclude', 'slow')];
}

function suitesWithControlPlane(): Suite[] {
  // Where workers are placed has a test of its own, with cgroups that it makes; a machine may not
  // let this one reach its own.
  return [jestSuiteWithKubernetes(), testProgram('container', '--placement', 'none')];
}

async function runSuite(suite: Suite): Promise<TestCounts> {
  console.log(`\n== ${suite.name}`);
  const counts = await suite.run();
  console.log(`${suite.name}: ${closingLine(counts)}`);
  return counts;
}
