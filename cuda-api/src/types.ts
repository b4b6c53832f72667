import type { Located } from './source.js';

/** The declarations of cuda-api/types/, as read. */
export type TypeDeclaration = Enumeration | Handle | Typedef | Aggregate | FunctionType | Macro;

interface Declared {
  name: string;
  /** Where it is declared: for errors. */
  place: Located;
  /** The header of the toolkit that declares it, if not cuda.h. */
  header?: string;
}

export interface Enumeration extends Declared {
  kind: 'enum';
  values: { name: string; value: number; text?: string }[];
}

/**
 * A pointer to something that only the driver knows. `handleKind`: a HandleKind of
 * wire/handle_table.h, for those that travel.
 */
interface Handle extends Declared {
  kind: 'handle';
  tag: string;
  handleKind?: string;
}

/** With `handleKind`, the number is a handle: it means nothing outside the process that made it. */
interface Typedef extends Declared {
  kind: 'typedef';
  type: string;
  handleKind?: string;
}

export interface Aggregate extends Declared {
  kind: 'struct' | 'union';
  align?: number;
  members: Member[];
}

export type Member = Field | Nested;

interface Field {
  type: string;
  name: string;
  dimensions: number[];
  /** A pointer that is never followed: it may travel as a number. */
  opaque: boolean;
}

/**
 * A struct or union without a name of its own; `name` is empty when its members belong to the outer
 * one.
 */
interface Nested {
  nested: 'struct' | 'union';
  name: string;
  members: Member[];
}

interface FunctionType extends Declared {
  kind: 'function';
  returns: string;
  parameters: string[];
}

export interface Macro extends Declared {
  kind: 'macro';
  value: string;
}

export function isNested(member: Member): member is Nested {
  return 'nested' in member;
}
