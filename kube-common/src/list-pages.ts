import { type ApiServer, LongAnswerError, type Query } from './api-server.js';

interface ListRequest {
  /** For example `/api/v1/pods`. */
  readonly path: string;
  readonly query?: Query | undefined;
  /** Timeout of each page in milliseconds. */
  readonly timeout: number;
}

export interface ListPage<T> {
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string };
  readonly items?: readonly T[];
}

const MOST_ITEMS = 500;
/** 500 usual pods need a third of it. */
const MOST_BYTES = 32 * 2 ** 20;
const SHRINKING = 8;

/**
 * Reads a list page by page. A tenant can make objects of 1.5 MB, of which a usual page would
 * exceed the memory of a process. So a page that is too long is read again with fewer items.
 * @throws ApiError
 */
export async function* pagesOf<T>(
  api: Pick<ApiServer, 'request'>,
  { path, query, timeout }: ListRequest,
): AsyncGenerator<ListPage<T>> {
  let next: string | undefined;
  let limit = MOST_ITEMS;
  for (;;) {
    const page: ListPage<T> | undefined = await api
      .request<ListPage<T>>({
        ...{ path, query: { ...query, limit, continue: next }, timeout },
        maximumBytes: limit === 1 ? undefined : MOST_BYTES,
      })
      .catch(ifLong);
    if (page === undefined) {
      limit = Math.ceil(limit / SHRINKING);
      continue;
    }
    yield page;
    next = page.metadata?.continue || undefined;
    if (next === undefined) return;
    limit = Math.min(MOST_ITEMS, 2 * limit);
  }
}

/** @returns undefined if the answer is too long */
function ifLong(error: unknown): undefined {
  if (!(error instanceof LongAnswerError)) throw error;
}
