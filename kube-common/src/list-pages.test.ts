import { ApiError, type ApiServer, LongAnswerError } from './api-server.js';
import { pagesOf } from './list-pages.js';

type Request = Parameters<ApiServer['request']>[0];

/** Plays a list of items of these lengths. Each item is its index. */
class Played {
  /** Limits of the requests. */
  readonly limits: number[] = [];

  constructor(readonly lengths: readonly number[]) {}

  async request<T>({ query, maximumBytes = Number.POSITIVE_INFINITY }: Request): Promise<T> {
    const [from, limit] = [Number(query?.['continue'] ?? 0), Number(query?.['limit'])];
    this.limits.push(limit);
    const page = this.lengths.slice(from, from + limit);
    if (page.reduce((sum, length) => sum + length, 0) > maximumBytes)
      throw new LongAnswerError('too long', undefined);
    const more = from + limit < this.lengths.length ? String(from + limit) : '';
    return { metadata: { continue: more }, items: page.map((_, index) => from + index) } as T;
  }
}

async function read(api: Pick<ApiServer, 'request'>): Promise<number[]> {
  const items: number[] = [];
  for await (const page of pagesOf<number>(api, { path: '/api/v1/pods', timeout: 1000 }))
    items.push(...(page.items ?? []));
  return items;
}

test('pagesOf() reads usual objects in pages of 500', async () => {
  const api = new Played(Array.from({ length: 1200 }, () => 20_000));
  expect(await read(api)).toEqual(api.lengths.map((_, index) => index));
  expect(api.limits).toEqual([500, 500, 500]);
});

test('pagesOf() reads objects of a tenant that makes them as long as it can', async () => {
  const usual = Array.from({ length: 600 }, () => 20_000);
  const api = new Played([...usual, ...Array.from({ length: 300 }, () => 1_500_000), ...usual]);
  expect(await read(api)).toEqual(api.lengths.map((_, index) => index));
  expect([Math.max(...api.limits), api.limits.at(-1)]).toEqual([500, 500]);
});

test('pagesOf() reads an object that is longer than a page', async () => {
  const api = new Played([1, 100_000_000, 1]);
  expect(await read(api)).toEqual([0, 1, 2]);
});

test('pagesOf() throws other errors', async () => {
  const request = () => Promise.reject(new ApiError('away', undefined));
  await expect(read({ request })).rejects.toThrow('away');
});
