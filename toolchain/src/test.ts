import { runMain } from './errors.js';
import { API_TOOLS, buildKubernetesTools, MONITORING_TOOLS } from './kubernetes-tools.js';
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
 * `npm test`: runs all tests that need neither a GPU nor Kubernetes, and prints the sum in one
 * line.
 * - Argument `fast`: only quick tests that start no other process.
 * - Argument `control-plane`: tests of single parts with a real API server. Its programs are built
 *   first (15 minutes, once).
 */
await runMain(async () => {
  const withControlPlane = process.argv[2] === 'control-plane';
  const isFast = process.argv[2] === 'fast';
  await ensurePrerequisites(
    withControlPlane ? [...TEST_PREREQUISITES, ...KUBERNETES_PREREQUISITES] : TEST_PREREQUISITES,
  );
  // Would exceed the timeout of a test.
  if (withControlPlane)
    await buildKubernetesTools([...API_TOOLS, ...MONITORING_TOOLS, 'helm'], (line) =>
      console.log(line),
    );
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
  // A separate test covers the placement of workers with its own cgroups. Here the machine may
  // deny access to cgroups.
  return [jestSuiteWithKubernetes(), testProgram('container', '--placement', 'none')];
}

async function runSuite(suite: Suite): Promise<TestCounts> {
  console.log(`\n== ${suite.name}`);
  const counts = await suite.run();
  console.log(`${suite.name}: ${closingLine(counts)}`);
  return counts;
}
