import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, createConnection, type Socket } from 'node:net';
import type { Logger } from 'pino';
import { jsonListener } from './json-service.js';

const MIB = 2 ** 20;
const [API_SERVER, ATTACKER] = ['127.0.0.1', '127.0.0.2'];

const clients: Socket[] = [];
let server: Server;
let warnings: string[];

beforeEach(async () => {
  const seen: string[] = [];
  warnings = seen;
  const logger = { warn: (text: string) => seen.push(text) } as unknown as Logger;
  const routes = { '/': (body: Buffer) => ({ received: body.length }) };
  server = createServer(jsonListener({ routes, logger, answered: () => {} }));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(() => {
  for (const client of clients.splice(0)) client.destroy();
  server.close();
});

/** Sends the head of a request, and the part of its body that is given. */
function send(header: string, body: string | Buffer, localAddress = API_SERVER): Socket {
  const { port } = server.address() as AddressInfo;
  const client = createConnection({ port, host: '127.0.0.1', localAddress });
  clients.push(client.on('error', () => {}));
  client.write(`POST / HTTP/1.1\r\nHost: a\r\n${header}\r\n\r\n`);
  client.write(body);
  return client;
}

async function answerTo(client: Socket): Promise<string> {
  return String((await once(client, 'data'))[0]);
}

test('a body that is announced as too long is refused before it comes', async () => {
  expect(await answerTo(send(`Content-Length: ${8 * MIB + 1}`, ''))).toContain(
    'it has more than 8388608 bytes',
  );
});

test('beyond 32 MiB, the address that holds most loses its largest request', async () => {
  const asked = send(`Content-Length: ${4 * MIB + 1}`, Buffer.alloc(4 * MIB));
  const small = send('Content-Length: 2', 'a', ATTACKER);
  const many = Array.from({ length: 11 }, () =>
    send(`Content-Length: ${4 * MIB}`, Buffer.alloc(3 * MIB), ATTACKER).resume(),
  );
  await Promise.race(many.map((client) => once(client, 'close')));
  expect(warnings[0]).toContain(
    `all bodies have more than 33554432 bytes, most of them from ${ATTACKER}`,
  );
  asked.write('a');
  expect(await answerTo(asked)).toContain(`{"received":${4 * MIB + 1}}`);
  small.write('a');
  expect(await answerTo(small)).toContain('{"received":2}');
});

async function sendSmallChunks(): Promise<void> {
  const client = send('Transfer-Encoding: chunked', '1\r\na\r\n'.repeat(35_000)).resume();
  await once(client, 'close');
  expect(warnings.at(-1)).toContain('all bodies have more than 33554432 bytes');
}

test('the memory of very small chunks counts', sendSmallChunks);

test('bodies that are complete or broken off no longer count', async () => {
  for (let index = 0; index < 6; index++) {
    const whole = send(`Content-Length: ${6 * MIB}`, Buffer.alloc(6 * MIB));
    expect(await answerTo(whole)).toContain(`{"received":${6 * MIB}}`);
    const broken = send(`Content-Length: ${6 * MIB}`, Buffer.alloc(5 * MIB));
    await once(broken.resume().end(), 'close');
  }
  expect(warnings.filter((warning) => warning.includes('all bodies'))).toEqual([]);
  await sendSmallChunks();
});
