/** `type name[2][3]` as C writes it. */
interface CDeclaration {
  type: string;
  name: string;
  dimensions: number[];
}

const DECLARATION = /^(.*[\s*])([A-Za-z_]\w*)((?:\[\d+\])*)$/;

/** Null when the text is no declaration of one name. */
export function parseDeclaration(text: string): CDeclaration | null {
  const [, type, name, dimensions] = DECLARATION.exec(text.trim()) ?? [];
  if (type === undefined || name === undefined || dimensions === undefined) return null;
  return {
    type: normalise(type),
    name,
    dimensions: [...dimensions.matchAll(/\d+/g)].map(([digits]) => Number(digits)),
  };
}

/** One spelling for each type: `const char**`, `void* const*`. */
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

/** What a pointer points to: `const char*` of `const char**`. */
export function pointee(type: string): string {
  return type.slice(0, -1).trim();
}

export function withoutConst(type: string): string {
  return type.replace(/^const /, '');
}

/** The name that a type is built from: `CUstream` of `const CUstream*`. */
export function baseName(type: string): string {
  return type
    .replace(/\bconst\b/g, '')
    .replace(/\*/g, '')
    .trim();
}
