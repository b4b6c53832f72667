import type { Located } from './source.js';

/** The declarations of cuda-api/types/, as read. */
export type TypeDeclaration = Enumeration | Handle | Typedef | Aggregate | FunctionType | Macro;

interface Declared {
  name: string;
  /** Position of the declaration, for errors. */
  place: Located;
  /** Toolkit header that declares it, if not cuda.h, after those that it requires. */
  header?: string;
}

export interface Enumeration extends Declared {
  kind: 'enum';
  values: { name: string; value: number; text?: string }[];
}

/**
 * An opaque pointer of the driver. `handleKind`: a HandleKind of wire/handle_table.h, for handles
 * that are sent.
 */
interface Handle extends Declared {
  kind: 'handle';
  tag: string;
  handleKind?: string;
}

/** With `handleKind`, the number is a handle, valid only in the process that created it. */
interface Typedef extends Declared {
  kind: 'typedef';
  type: string;
  handleKind?: string;
  /** Whether the number is an address, which people read in base 16. */
  address: boolean;
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
  /** A pointer that is never dereferenced, so it may be sent as a number. */
  opaque: boolean;
}

/**
 * An anonymous struct or union type. `name` is empty if its members belong to the outer one.
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
