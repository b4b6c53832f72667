import { type Call, type Parameter, perThreadSymbol } from '../calls.js';
import type { Specification } from '../specification.js';

export const BANNER = '// Generated. Do not edit, change cuda-api/.\n';

export function declare(type: string, name: string): string {
  return `${type} ${name}`;
}

/** `CUstream hStream, unsigned int flags`. */
export function parameterList(parameters: readonly Parameter[], ...more: string[]): string {
  return [...parameters.map(({ type, name }) => declare(type, name)), ...more].join(', ');
}

export function argumentList(parameters: readonly Parameter[], ...more: string[]): string {
  return [...parameters.map(({ name }) => name), ...more].join(', ');
}

/** The parameters without names, for bodies that do not use them. */
export function typeList(parameters: readonly Parameter[]): string {
  return parameters.map(({ type }) => type).join(', ');
}

/** Every exported symbol with its call. */
export function symbols({
  calls,
}: Specification): { symbol: string; call: Call; perThread: boolean }[] {
  return calls
    .filter(({ call }) => !call.internal)
    .flatMap(({ call }) => {
      const variant = perThreadSymbol(call);
      const plain = { symbol: call.name, call, perThread: false };
      return variant ? [plain, { symbol: variant, call, perThread: true }] : [plain];
    });
}

/** The calls that a trace shows, which number them in this order. */
export function tracedCalls({ calls }: Specification): Call[] {
  return calls.map(({ call }) => call).filter((call) => !call.internal);
}

export function indent(text: string, by = '  '): string {
  return text
    .split('\n')
    .map((line) => (line === '' ? line : by + line))
    .join('\n');
}
