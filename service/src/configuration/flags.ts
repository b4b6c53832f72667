import { Option as Flag } from 'commander';
import { type NamedOption, optionsOf, type Schema } from './option.js';

/**
 * The flags of a schema for commander. The functions of `load.ts` validate what it collects.
 * @param keys the options of the command; all by default
 */
export function flagsOf(schema: Schema, keys?: readonly string[]): Flag[] {
  return optionsOf(schema)
    .filter(({ key }) => keys === undefined || keys.includes(key))
    .map(toFlag);
}

function toFlag({ flag, option }: NamedOption): Flag {
  const { kind, details, defaultText } = option;
  const result = new Flag(
    `${details.short === undefined ? '' : `${details.short}, `}${flag} <${kind.placeholder}>`,
    `${details.help} (default: ${defaultText})`,
  );
  return kind.shape === 'one' ? result : result.argParser(append);
}

function append(value: string, previous: readonly string[] = []): string[] {
  return [...previous, value];
}
