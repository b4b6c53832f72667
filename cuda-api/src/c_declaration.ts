/** A C declaration such as `type name[2][3]`. */
interface CDeclaration {
  type: string;
  name: string;
  dimensions: number[];
}

const DECLARATION = /^(.*[\s*])([A-Za-z_]\w*)((?:\[\d+\])*)$/;

/** Null if the text is not a declaration of one name. */
export function parseDeclaration(text: string): CDeclaration | null {
  const [, type, name, dimensions] = DECLARATION.exec(text.trim()) ?? [];
  if (type === undefined || name === undefined || dimensions === undefined) return null;
  return {
    type: normalise(type),
    name,
    dimensions: [...dimensions.matchAll(/\d+/g)].map(([digits]) => Number(digits)),
  };
}

/** Normalises the spelling of a type: `const char**`, `void* const*`. */
export function normalise(type: string): string {
  return type
    .trim()
    .replace(/\s+/g, ' ')
    .replace(/\s*\*\s*/g, '*')
    .replace(/\*const/g, '* const');
}

export function isPointer(type: string): boolean {
  return type.endsWith('*');
}

/** The type behind a pointer: `const char*` for `const char**`. */
export function pointee(type: string): string {
  return type.slice(0, -1).trim();
}

export function withoutConst(type: string): string {
  return type.replace(/^const /, '');
}

/** The base type: `CUstream` for `const CUstream*`. */
export function baseName(type: string): string {
  return type
    .replace(/\bconst\b/g, '')
    .replace(/\*/g, '')
    .trim();
}
