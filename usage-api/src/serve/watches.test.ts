import { EventEmitter } from 'node:events';
import { Watches } from './watches.js';

class Response extends EventEmitter {
  readonly destroyed: boolean = false;
}

class ClosedResponse extends Response {
  override readonly destroyed = true;
}

const open = (watches: Watches, user: string, response = new Response()) => {
  watches.open(user, response, () => ({ end: () => response.emit('close') }));
  return response;
};

function openMany(watches: Watches, count: number, user: (index: number) => string): Response[] {
  return Array.from({ length: count }, (_, index) => open(watches, user(index)));
}

test('a user has at most 16 watches, and one that ends makes room', () => {
  const watches = new Watches();
  const [first] = openMany(watches, 16, () => 'anna');
  expect(() => open(watches, 'anna')).toThrow(
    'This server has 16 open watches of user "anna", which is the limit. End one of them, or ' +
      'list without a watch.',
  );
  open(watches, 'olga');
  first?.emit('close');
  open(watches, 'anna');
  expect(watches.size).toBe(17);
});

test('the service accounts of a namespace count as one user', () => {
  const watches = new Watches();
  openMany(watches, 16, (index) => `system:serviceaccount:team-a:account-${index}`);
  expect(() => open(watches, 'system:serviceaccount:team-a:another')).toThrow(
    'This server has 16 open watches of the service accounts of the namespace "team-a"',
  );
  open(watches, 'system:serviceaccount:team-b:another');
});

test('all users together have at most 512 watches, and end() makes room', () => {
  const watches = new Watches();
  openMany(watches, 512, (index) => `user-${index}`);
  expect(() => open(watches, 'anna')).toThrow(
    'This server has 512 open watches of all users together, which is the limit.',
  );
  watches.end();
  expect(watches.size).toBe(0);
  open(watches, 'anna');
});

test('a watch whose client has left is not counted', () => {
  const watches = new Watches();
  open(watches, 'anna', new ClosedResponse());
  expect(watches.size).toBe(0);
});

test('a watch that cannot start is not counted', () => {
  const watches = new Watches();
  const start = () => {
    throw new Error('too old');
  };
  expect(() => watches.open('anna', new Response(), start)).toThrow('too old');
  expect(watches.size).toBe(0);
});
