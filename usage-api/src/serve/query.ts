import type { IncomingHttpHeaders } from 'node:http';
import type { Definition } from '../definitions.js';
import { UsageError } from '../errors.js';
import type { UsageObject } from '../resources.js';
import { fieldSelector, labelSelector, type Selector } from './selectors.js';
import type { IncludeObject } from './table.js';

/** Parsed query parameters. */
export interface Query<T> {
  readonly selects: Selector<T>;
  /** 0: no limit. */
  readonly limit: number;
  /** Continue the list after this key. */
  readonly after: string | undefined;
  readonly watch: boolean;
  /** Version at which a watch starts. Undefined: it starts with the current objects. */
  readonly since: number | undefined;
  readonly bookmarks: boolean;
  /** Maximum duration of a watch in milliseconds. */
  readonly timeout: number;
  readonly includeObject: IncludeObject;
}

const MAXIMUM_WATCH = 30 * 60_000;

/** @throws UsageError */
export function readQuery<T extends UsageObject>(
  parameters: URLSearchParams,
  definition: Definition<T>,
): Query<T> {
  const labels = labelSelector(parameters.get('labelSelector') ?? '');
  const fields = fieldSelector(parameters.get('fieldSelector') ?? '', definition.fields);
  const watch = wantsWatch(parameters);
  const version = number(parameters, 'resourceVersion');
  const parameter = 'sendInitialEvents';
  // A client that is refused a streaming list (client-go) falls back to list and watch.
  if (flag(parameters, parameter))
    throw new UsageError('PARAMETER_WRONG', { parameter, value: 'true', allowed: 'false' });
  return {
    selects: (object) => labels(object.metadata.labels) && fields(object),
    limit: number(parameters, 'limit'),
    after: readContinue(parameters.get('continue') ?? ''),
    watch,
    since: watch && version > 0 ? version : undefined,
    bookmarks: flag(parameters, 'allowWatchBookmarks'),
    timeout: Math.min(MAXIMUM_WATCH, number(parameters, 'timeoutSeconds') * 1000 || MAXIMUM_WATCH),
    includeObject: readInclude(parameters.get('includeObject') ?? 'Metadata'),
  };
}

/** @throws UsageError PARAMETER_WRONG */
export function wantsWatch(parameters: URLSearchParams): boolean {
  return flag(parameters, 'watch');
}

export function writeContinue(key: string): string {
  return Buffer.from(JSON.stringify({ after: key })).toString('base64url');
}

function readContinue(text: string): string | undefined {
  if (text === '') return undefined;
  try {
    const { after } = JSON.parse(Buffer.from(text, 'base64url').toString()) as { after?: unknown };
    if (typeof after === 'string') return after;
  } catch {
    // Reported below.
  }
  throw new UsageError('CONTINUE_WRONG');
}

/** Whether the client accepts a Table. All clients accept JSON, so nothing else is negotiated. */
export function wantsTable({ accept = '' }: IncomingHttpHeaders): boolean {
  return accept.split(',').some((range) => {
    const parts = range.split(';').map((part) => part.trim());
    return TABLE.every((part) => parts.includes(part));
  });
}

const TABLE = ['application/json', 'as=Table', 'v=v1', 'g=meta.k8s.io'];

function flag(parameters: URLSearchParams, parameter: string): boolean {
  const value = parameters.get(parameter);
  if (value === null || value === 'false' || value === '0') return false;
  if (value === '' || value === 'true' || value === '1') return true;
  throw new UsageError('PARAMETER_WRONG', { parameter, value, allowed: 'true or false' });
}

function number(parameters: URLSearchParams, parameter: string): number {
  const value = parameters.get(parameter) ?? '';
  if (!/^\d{0,15}$/.test(value))
    throw new UsageError('PARAMETER_WRONG', { parameter, value, allowed: 'a whole number' });
  return Number(value);
}

function readInclude(value: string): IncludeObject {
  if (value === 'Metadata' || value === 'Object') return value;
  throw new UsageError('PARAMETER_WRONG', {
    parameter: 'includeObject',
    value,
    allowed: 'Metadata or Object',
  });
}
