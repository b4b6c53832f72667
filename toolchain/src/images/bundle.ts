import { cpSync, existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { type BuildOptions, build, type Plugin } from 'esbuild';
import { REPOSITORY } from '../repository.js';

/** Workspaces whose modules load files of their package by relative path. */
const OURS = new RegExp(
  '/(service|node-state|gpu-proxy|device-plugin|scheduler-ext|release-hooks|' +
    'usage-api|kube-common|ledger|cuda-api)/dist/.*\\.js$',
);
/** Files that those modules load. */
const FILES = [
  'node-state/proto',
  'device-plugin/proto',
  'kube-common/proto',
  'usage-api/dashboard/page.html',
  'usage-api/dashboard/page.css',
  'usage-api/dashboard/dist/page.js',
];

/**
 * Bundles each `package/dist/main.js` with all its modules into `NAME.js` in `directory`. A bundle
 * starts much faster than a thousand small files and needs no node_modules. Data files of packages
 * are copied with their paths.
 */
export async function bundle(
  entries: Readonly<Record<string, string>>,
  directory: string,
): Promise<void> {
  await build(optionsFor(entries, directory));
  for (const files of FILES.filter((one) => existsSync(path.join(REPOSITORY, one)))) {
    cpSync(path.join(REPOSITORY, files), path.join(directory, files), { recursive: true });
  }
}

/** Directories of the npm packages whose code is in the bundle of a module. */
export async function bundledDirectories(module: string): Promise<string[]> {
  const options = optionsFor({ bundle: module }, REPOSITORY);
  const { metafile } = await build({ ...options, write: false, metafile: true });
  const directories = Object.keys(metafile.inputs).flatMap(
    (file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? [],
  );
  return [...new Set(directories)].sort();
}

function optionsFor(entries: Readonly<Record<string, string>>, outdir: string): BuildOptions {
  return {
    absWorkingDir: REPOSITORY,
    entryPoints: { ...entries },
    outdir,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    minify: true,
    keepNames: true, // stacks and classes' names appear in logs
    legalComments: 'none',
    logLevel: 'error',
    banner: { js: BANNER },
    plugins: [ownDirectories],
  };
}

/** Defines `require` for CommonJS modules in the bundle, because an ES module has none. */
const BANNER = [
  "import { createRequire as bundledCreateRequire } from 'node:module';",
  'const require = bundledCreateRequire(import.meta.url);',
  'const bundledRoot = import.meta.dirname;',
].join('\n');

/** Replaces the directory of our modules by the one below the bundle's. */
const ownDirectories: Plugin = {
  name: 'own-directories',
  setup({ onLoad }) {
    onLoad({ filter: OURS }, ({ path: file }) => {
      const own = JSON.stringify(`/${path.relative(REPOSITORY, path.dirname(file))}`);
      return {
        contents: readFileSync(file, 'utf8').replaceAll(
          'import.meta.dirname',
          `(bundledRoot + ${own})`,
        ),
        loader: 'js',
      };
    });
  },
};
