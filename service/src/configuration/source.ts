import type { NamedOption } from './option.js';

/** One entry of an option, before parsing. */
export interface Entry {
  /**
   * The subject of a sentence about it: `--window`, `NVIDIA_VIRTUAL_WINDOW`, `/etc/node.yaml:3:
   * window`.
   */
  readonly where: string;
  readonly text: string;
}

/** Where values come from: the entries of an option there; undefined when there are none. */
export type Source = (option: NamedOption) => readonly Entry[] | undefined;

/** Flags, as commander collected them: a text, or a list for one that may be repeated. */
export function flagSource(flags: Readonly<Record<string, unknown>>): Source {
  return ({ flag }) => {
    const value = flags[attributeName(flag)] as string | readonly string[] | undefined;
    return value === undefined ? undefined : [value].flat().map((text) => ({ where: flag, text }));
  };
}

/** An empty variable counts as unset, because manifests cannot omit one. */
export function environmentSource(environment: NodeJS.ProcessEnv): Source {
  return ({ variable, option }) => {
    const value = variable && environment[variable];
    if (!value) return undefined;
    const texts = option.kind.shape === 'one' ? [value] : value.split(',');
    return texts.map((text) => ({ where: variable, text: text.trim() }));
  };
}

/** As commander names what it found: `limitsPinnedMemory` for `--limits-pinned-memory`. */
function attributeName(flag: string): string {
  return flag.slice(2).replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase());
}
