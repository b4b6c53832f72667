import { jest } from '@jest/globals';
import { Leadership } from './leadership.js';

/** Of `performance.now()`, in milliseconds. */
let now: number;
let lease: { holderIdentity: string; acquireTime: string; renewTime: string };
let asked: string[];
let leadership: Leadership;

const at = (seconds: number) => new Date(seconds * 1000).toISOString();

async function request<T>({ path }: { path: string }): Promise<T> {
  asked.push(path);
  if (lease.holderIdentity === 'away') throw new Error('no answer');
  return { spec: lease } as T;
}

beforeEach(() => {
  [now, asked] = [1000, []];
  jest.spyOn(performance, 'now').mockImplementation(() => now);
  lease = { holderIdentity: 'here_1', acquireTime: at(10), renewTime: at(20) };
  leadership = new Leadership({ api: { request }, lease: 'n/l', host: 'here' });
});
afterEach(() => {
  jest.restoreAllMocks();
});

/** Another read after a second, in which the lease was renewed. */
function next(seconds = 1, renewed = true): Promise<string> {
  now += seconds * 1000;
  if (renewed) lease.renewTime = at(Date.parse(lease.renewTime) / 1000 + seconds);
  return leadership.state();
}

test('without a lease, it leads', async () => {
  expect(await new Leadership({ api: { request }, lease: undefined, host: 'x' }).state()).toBe(
    'leads',
  );
  expect(asked).toEqual([]);
});

test('it leads when it has seen a renewal', async () => {
  expect(await leadership.state()).toBe('unknown');
  expect(asked).toEqual(['/apis/coordination.k8s.io/v1/namespaces/n/leases/l']);
  expect(await next()).toBe('leads');
  expect(await next(1, false)).toBe('leads');
});

test('it does not lead without renewals, or if it did not look for long', async () => {
  await leadership.state();
  await next();
  expect(await next(6, false)).toBe('unknown');
  expect(await next(60)).toBe('unknown');
  expect(await next()).toBe('leads');
});

test('it does not lead soon after another one did', async () => {
  lease.acquireTime = at(18);
  await leadership.state();
  expect(await next()).toBe('unknown');
  expect(await next(2)).toBe('leads');
});

test('it follows the extender of another host, and knows nothing without an answer', async () => {
  await leadership.state();
  await next();
  lease.holderIdentity = 'away';
  expect(await next()).toBe('unknown');
  lease.holderIdentity = 'hereabouts_1';
  expect(await next()).toBe('follows');
  lease.holderIdentity = 'here_2';
  expect(await next()).toBe('unknown');
});

test('the leader is the process of kube-scheduler that holds the lease', async () => {
  expect(await leadership.leader()).toBe('here_1');
  lease.holderIdentity = 'there_1';
  expect(await leadership.leader()).toBeUndefined();
  lease.holderIdentity = 'away';
  expect(await leadership.leader()).toBeUndefined();
  const only = new Leadership({ api: { request }, lease: undefined, host: 'x' });
  const leader = await only.leader();
  expect(leader).toBeDefined();
  expect(await only.leader()).toBe(leader);
});
