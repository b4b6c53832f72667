import type { NamedOption } from './option.js';

/** One entry of an option, before parsing. */
export interface Entry {
  /**
   * Origin for error messages: `--window`, `NVIDIA_VIRTUAL_WINDOW` or `/etc/node.yaml:3: window`.
   */
  readonly where: string;
  readonly text: string;
}

/** Returns the entries of an option. Undefined: none. */
export type Source = (option: NamedOption) => readonly Entry[] | undefined;

/** Flags as collected by commander: a string, or a list for a repeatable flag. */
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

/** Commander's name for a flag: `limitsPinnedMemory` for `--limits-pinned-memory`. */
function attributeName(flag: string): string {
  return flag.slice(2).replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase());
}
