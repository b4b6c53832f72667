import { isPointer, pointee, withoutConst } from '../c_declaration.js';
import { type Call, givesWork, travels } from '../calls.js';
import type { Specification } from '../specification.js';
import type { TypeTable } from '../type_table.js';
import { type Aggregate, isNested, type Member } from '../types.js';
import { BANNER, tracedCalls } from './text.js';

/** trace_facts.cpp: names and types of all calls and their parameters, for traces. */
export function emitTraceFacts(specification: Specification): string {
  const facts = new Facts(specification.types);
  const calls = tracedCalls(specification).map((call) => facts.addCall(call));
  const works = specification.calls
    .map(({ call }) => call)
    .filter(travels)
    .map((call) => facts.workOf(call));
  return `${BANNER}#include "interposer/trace/facts.h"

namespace interposer::trace {

const CallFacts kCalls[] = {
${calls.join('\n')}
};
const std::size_t kTracedCalls = sizeof kCalls / sizeof *kCalls;
const Parameter kParameters[] = {
${facts.parameters.join('\n')}
    {},
};
const Type kTypes[] = {
${facts.types.join('\n')}
};
const Field kFields[] = {
${facts.fields.join('\n')}
    {},
};
const EnumValue kEnumValues[] = {
${facts.enumValues.join('\n')}
    {},
};
const WorkFacts kWorks[] = {
    {},
${works.join('\n')}
};
const std::size_t kWorkCount = sizeof kWorks / sizeof *kWorks;
const char kText[] =
${facts.text.literals()};

}  // namespace interposer::trace
`;
}

/** Builds the tables, which refer to each other by index. */
class Facts {
  readonly text = new Text();
  readonly parameters: string[] = [];
  readonly types: string[] = [];
  readonly fields: string[] = [];
  readonly enumValues: string[] = [];
  private readonly indexOf = new Map<string, number>();

  constructor(private readonly table: TypeTable) {}

  addCall({ name, parameters }: Call): string {
    const first = this.parameters.length;
    for (const parameter of parameters) {
      const length = parameters.findIndex((each) => each.name === parameter.count);
      this.parameters.push(
        `    {${this.text.add(parameter.name)}, ${this.typeOf(parameter.type)}, ${length}},`,
      );
    }
    return `    {${this.text.add(name)}, ${first}, ${parameters.length}},  // ${name}`;
  }

  /** How traces call the work that the GPU does because of a call: `memcpy HtoD`. */
  workOf(call: Call): string {
    const [, what] = /^cu(?:Mem(?=cpy|set))?(\w+?)(?:Async)?(?:_v\d)?$/.exec(call.name) ?? [];
    const label = (what ?? call.name)
      .replace(/^(cpy|set)(?=.)/, '$1 ')
      .replace(/^(cpy|set)/, 'mem$1');
    const isWork = givesWork(call) && call.submits !== 'marker';
    const name = this.text.add(isWork ? label : '');
    return `    {${name}, Work::${isWork ? call.submits : 'none'}},  // ${call.name}`;
  }

  private typeOf(declared: string): number {
    const type = isPointer(declared) ? declared : withoutConst(declared);
    const known = this.indexOf.get(type);
    if (known !== undefined) return known;
    const index = this.types.length;
    this.indexOf.set(type, index);
    this.types.push('');
    this.types[index] = `    {${this.describe(type)}},  // ${type}`;
    return index;
  }

  private describe(type: string): string {
    if (isPointer(type)) return this.describePointer(type);
    const name = type.replace(/ const$/, '');
    const size = this.table.layout(name).size;
    const declared = this.table.find(name);
    if (this.table.handleKind(name) !== undefined)
      return row('handle', size, 0, 0, this.table.handleKind(name));
    switch (declared?.kind) {
      case 'typedef':
        return declared.address ? row('address', size) : this.describe(declared.type);
      case 'enum':
        return row('enumeration', size, ...this.addValues(declared.values));
      case 'struct':
        return row('structure', size, ...this.addFields(declared));
      case 'union':
        return row('opaque', size);
      case 'handle':
      case 'function':
        return row('address', size);
      default:
        return row(numberKind(name), size);
    }
  }

  /** Text is read up to its end, addresses of unknown things are not followed. */
  private describePointer(type: string): string {
    const constant = Number(type.startsWith('const '));
    const target = pointee(type);
    const base = this.table.resolve(withoutConst(target));
    if (base === 'char') return row('text', 8, 0, constant);
    const declared = this.table.find(base);
    if (base === 'void' || declared?.kind === 'function') return row('address', 8);
    return row('pointer', 8, this.typeOf(target), constant);
  }

  private addValues(values: readonly { name: string; value: number }[]): [number, number] {
    const first = this.enumValues.length;
    for (const { name, value } of values)
      this.enumValues.push(`    {${value | 0}, ${this.text.add(name)}},`);
    return [first, values.length];
  }

  /** A nested type adds its fields after those of the outer one, which must stay together. */
  private addFields(aggregate: Aggregate): [number, number] {
    const offsets = new Map(
      this.table.place(aggregate).fields.map(({ path, offset }) => [path, offset]),
    );
    const fields = shownFields(aggregate.members, '');
    const types = fields.map(({ type }) => this.typeOf(type));
    const first = this.fields.length;
    fields.forEach(({ path, elements }, index) => {
      this.fields.push(
        `    {${this.text.add(path)}, ${types[index]}, ${offsets.get(path)}, ${elements}},`,
      );
    });
    return [first, fields.length];
  }
}

function row(kind: string, size: number, first = 0, count = 0, handle = 'none'): string {
  return `Kind::${kind}, wire::HandleKind::${handle}, ${size}, ${first}, ${count}`;
}

function numberKind(name: string): string {
  if (name === 'float' || name === 'double') return 'real';
  return name.startsWith('unsigned') || name === 'size_t' || name.startsWith('uint')
    ? 'natural'
    : 'integer';
}

interface ShownField {
  path: string;
  type: string;
  elements: number;
}

/** Members of unions are left out: which of them is valid depends on another field. */
function shownFields(members: readonly Member[], prefix: string): ShownField[] {
  return members.flatMap((member) => {
    if (isNested(member)) {
      if (member.nested === 'union') return [];
      return shownFields(member.members, member.name === '' ? prefix : `${prefix}${member.name}.`);
    }
    if (/^(reserved|pad|_)/i.test(member.name)) return [];
    const elements = member.dimensions.reduce((product, dimension) => product * dimension, 1);
    return [{ path: prefix + member.name, type: member.type, elements }];
  });
}

/** All names in one string, so that the tables hold no addresses that the loader must adjust. */
class Text {
  private readonly places = new Map<string, number>([['', 0]]);
  private end = 1;

  add(name: string): number {
    const known = this.places.get(name);
    if (known !== undefined) return known;
    const place = this.end;
    this.places.set(name, place);
    this.end += name.length + 1;
    return place;
  }

  literals(): string {
    return [...this.places.keys()].map((name) => `    "${name}\\0"`).join('\n');
  }
}
