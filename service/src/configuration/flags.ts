import { Option as Flag } from 'commander';
import { type NamedOption, optionsOf, type Schema } from './option.js';

/**
 * The flags of a schema, for commander to collect; `loadConfiguration` and `loadFlags` check what
 * it collected.
 * @param keys which options the command has; all by default.
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
