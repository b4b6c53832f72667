import { baseName, isPointer } from './c_declaration.js';
import { type Aggregate, isNested, type Member, type TypeDeclaration } from './types.js';

const BUILTIN: Readonly<Record<string, number>> = {
  char: 1,
  'signed char': 1,
  'unsigned char': 1,
  short: 2,
  'unsigned short': 2,
  int: 4,
  unsigned: 4,
  'unsigned int': 4,
  long: 8,
  'unsigned long': 8,
  'long long': 8,
  'unsigned long long': 8,
  float: 4,
  double: 8,
  size_t: 8,
  int32_t: 4,
  uint32_t: 4,
  int64_t: 8,
  uint64_t: 8,
};

interface Layout {
  size: number;
  align: number;
}

/** A field with its full path: `value.external.win32`. */
interface Placed {
  path: string;
  offset: number;
  size: number;
}

/** All declared types with their order and layout, and whether they may be sent as plain bytes. */
export class TypeTable {
  private readonly byName = new Map<string, TypeDeclaration>();
  /** Declarations in dependency order. */
  readonly ordered: readonly TypeDeclaration[];

  constructor(readonly declarations: readonly TypeDeclaration[]) {
    for (const declaration of declarations) {
      const earlier = this.byName.get(declaration.name);
      if (earlier)
        declaration.place.fail(
          `${declaration.name} is already declared in ${earlier.place.file}:${earlier.place.line}.`,
        );
      this.byName.set(declaration.name, declaration);
    }
    for (const declaration of declarations) this.checkNames(declaration);
    this.ordered = this.order();
  }

  find(name: string): TypeDeclaration | undefined {
    return this.byName.get(name);
  }

  knows(type: string): boolean {
    const name = baseName(type);
    return name in BUILTIN || this.byName.has(name) || (name === 'void' && isPointer(type));
  }

  /** HandleKind of a handle type. */
  handleKind(type: string): string | undefined {
    const declared = this.byName.get(type);
    return declared?.kind === 'handle' || declared?.kind === 'typedef'
      ? declared.handleKind
      : undefined;
  }

  /** Resolves typedefs. */
  resolve(type: string): string {
    const declared = this.byName.get(type);
    return declared?.kind === 'typedef' ? this.resolve(declared.type) : type;
  }

  /** Why values of this type must not be sent as plain bytes, or null if they may. */
  whyNotBytes(type: string): string | null {
    if (isPointer(type)) return `${type} is a pointer`;
    if (this.handleKind(type)) return `${type} is a handle`;
    const declared = this.byName.get(this.resolve(type));
    if (declared?.kind === 'handle' || declared?.kind === 'function') return `${type} is a pointer`;
    if (declared?.kind !== 'struct' && declared?.kind !== 'union') return null;
    return this.whyMembersNotBytes(declared.name, declared.members);
  }

  private order(): TypeDeclaration[] {
    const done = new Set<string>();
    const open = new Set<string>();
    const order: TypeDeclaration[] = [];
    const visit = (declaration: TypeDeclaration): void => {
      if (done.has(declaration.name)) return;
      if (open.has(declaration.name))
        declaration.place.fail(`${declaration.name} depends on itself.`);
      open.add(declaration.name);
      for (const name of neededNames(declaration)) {
        const needed = this.byName.get(name);
        if (needed && needed !== declaration) visit(needed);
      }
      done.add(declaration.name);
      order.push(declaration);
    };
    for (const declaration of this.declarations) visit(declaration);
    return order;
  }

  layout(type: string): Layout {
    if (isPointer(type)) return { size: 8, align: 8 };
    const builtin = BUILTIN[baseName(type)];
    if (builtin !== undefined) return { size: builtin, align: builtin };
    const declared = this.byName.get(baseName(type));
    switch (declared?.kind) {
      case 'typedef':
        return this.layout(declared.type);
      case 'struct':
      case 'union':
        return this.place(declared).layout;
      case 'enum':
        return { size: 4, align: 4 };
      default:
        return { size: 8, align: 8 };
    }
  }

  /** The offsets of an aggregate's named fields, by the x86-64 System V ABI. */
  place(aggregate: Aggregate): { layout: Layout; fields: Placed[] } {
    const placed = this.placeMembers(aggregate.kind, aggregate.members);
    const align = Math.max(placed.layout.align, aggregate.align ?? 1);
    return { layout: { align, size: roundUp(placed.layout.size, align) }, fields: placed.fields };
  }

  private placeMembers(
    kind: 'struct' | 'union',
    members: readonly Member[],
  ): { layout: Layout; fields: Placed[] } {
    const fields: Placed[] = [];
    let end = 0;
    let align = 1;
    for (const member of members) {
      const inner = isNested(member) ? this.placeMembers(member.nested, member.members) : null;
      const layout = inner?.layout ?? this.fieldLayout(member);
      const offset = kind === 'union' ? 0 : roundUp(end, layout.align);
      if (member.name !== '') fields.push({ path: member.name, offset, size: layout.size });
      const prefix = member.name === '' ? '' : `${member.name}.`;
      for (const field of inner?.fields ?? [])
        fields.push({ ...field, path: prefix + field.path, offset: offset + field.offset });
      end = Math.max(end, offset + layout.size);
      align = Math.max(align, layout.align);
    }
    return { layout: { size: roundUp(end, align), align }, fields };
  }

  private fieldLayout(member: Member): Layout {
    if (isNested(member)) return this.placeMembers(member.nested, member.members).layout;
    const { size, align } = this.layout(member.type);
    return {
      size: member.dimensions.reduce((product, dimension) => product * dimension, size),
      align,
    };
  }

  private whyMembersNotBytes(owner: string, members: readonly Member[]): string | null {
    for (const member of members) {
      if (isNested(member)) {
        const why = this.whyMembersNotBytes(owner, member.members);
        if (why) return why;
      } else if (!member.opaque && this.whyNotBytes(member.type)) {
        return `${owner} contains ${member.name}, and ${this.whyNotBytes(member.type)}`;
      }
    }
    return null;
  }

  private checkNames(declaration: TypeDeclaration): void {
    for (const name of neededNames(declaration)) {
      if (name !== 'void' && !(name in BUILTIN) && !this.byName.has(name)) {
        declaration.place.fail(
          `${declaration.name} uses ${name}, which cuda-api/types/ does not declare.`,
        );
      }
    }
  }
}

function roundUp(value: number, align: number): number {
  return Math.ceil(value / align) * align;
}

function neededNames(declaration: TypeDeclaration): string[] {
  switch (declaration.kind) {
    case 'typedef':
      return [baseName(declaration.type)];
    case 'function':
      return [declaration.returns, ...declaration.parameters].map(baseName);
    case 'struct':
    case 'union':
      return memberNames(declaration.members);
    default:
      return [];
  }
}

function memberNames(members: readonly Member[]): string[] {
  return members.flatMap((member) =>
    isNested(member) ? memberNames(member.members) : [baseName(member.type)],
  );
}
