import { readFileSync } from 'node:fs';
import path from 'node:path';
import { mustRun, runCommand } from '../command.js';
import { REPOSITORY } from '../repository.js';
import { oneVersion } from '../rules/one-version.js';

/** State of the tree that decides whether it can be released. */
export interface TreeState {
  readonly version: string;
  /** Output of `git status --porcelain`. */
  readonly changes: string;
  readonly head: string;
  /** Commit of the tag of this version. Undefined: there is no such tag. */
  readonly tagged: string | undefined;
  /** Text of CHANGELOG.md. */
  readonly changelog: string;
  /** Violations of the house rule about versions. */
  readonly otherVersions: readonly string[];
}

export async function readTree(version: string): Promise<TreeState> {
  const tag = ['rev-parse', '--verify', '--quiet', `refs/tags/v${version}^{commit}`];
  const { status, output } = await runCommand('git', tag);
  return {
    version,
    changes: await mustRun('git', ['status', '--porcelain']),
    head: (await mustRun('git', ['rev-parse', 'HEAD'])).trim(),
    tagged: status === 0 ? output.trim() : undefined,
    changelog: readFileSync(path.join(REPOSITORY, 'CHANGELOG.md'), 'utf8'),
    otherVersions: await oneVersion.check(),
  };
}

/** Returns a sentence for each reason why this tree cannot be released. */
export function findObstacles(tree: TreeState): string[] {
  const { version, changes, head, tagged, changelog, otherVersions } = tree;
  const obstacles = [...otherVersions];
  if (changes !== '')
    obstacles.push(`Files differ from the last commit. Commit them, or remove them:\n${changes}`);
  if (tagged !== undefined && tagged !== head)
    obstacles.push(
      `The tag v${version} is at ${tagged}: set the next version in package.json, and in the ` +
        'files that `npm run check` names.',
    );
  if (changesOf(version, changelog) === '')
    obstacles.push(`CHANGELOG.md has no changes of ${version}: add a section "## ${version}".`);
  if (/^## Unreleased/m.test(changelog))
    obstacles.push(`CHANGELOG.md has unreleased changes: move them to "## ${version}".`);
  return obstacles;
}

/** The section of a version in CHANGELOG.md, without its title. Empty: it has none. */
export function changesOf(version: string, changelog: string): string {
  const sections = changelog.split(/^## /m).slice(1);
  const section = sections.find((text) => /^[^\s,]*/.exec(text)?.[0] === version) ?? '';
  return section.replace(/^.*\n?/, '').trim();
}
