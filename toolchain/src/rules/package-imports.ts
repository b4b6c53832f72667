import type { Rule } from './rule.js';
import { type TrackedFile, trackedFiles } from './tracked-files.js';

const GPU_PROXY_IMPORT = /(?:from|import|import\()\s*'@nvidia-virtual\/gpu-proxy(?:\/[^']*)?'/;
/** Tests and their helpers may use gpu-proxy. */
const TEST = /(^test|\/testing)\/|\.test\.ts$/;

/** gpu-proxy is a program: other packages share code with it through service/ and node-state/. */
export const packageImports: Rule = {
  law: 'only tests import gpu-proxy',
  check: async () => (await trackedFiles()).flatMap(findGpuProxyImport),
};

export function findGpuProxyImport(file: TrackedFile): string[] {
  const production = file.path.endsWith('.ts') && !TEST.test(file.path);
  return production && GPU_PROXY_IMPORT.test(file.text())
    ? [`${file.path} imports gpu-proxy: move the shared code to service/ or node-state/.`]
    : [];
}
