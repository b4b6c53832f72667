import { once } from 'node:events';
import {
  Agent,
  createServer,
  type Server as HttpServer,
  type IncomingMessage,
  type RequestListener,
  request,
} from 'node:http';
import { createServer as createSecureServer, type Server as HttpsServer } from 'node:https';
import { type AddressInfo, createConnection, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { connect as connectSecurely } from 'node:tls';
import { issue, makeAuthority } from '@nvidia-virtual/kube-common/certificates/authority';
import { Connections } from '@nvidia-virtual/service/connections';

const clients: Socket[] = [];

afterEach(() => {
  for (const client of clients.splice(0)) client.destroy();
});

async function serve<T extends HttpServer | HttpsServer>(
  server: T,
  limits?: ConstructorParameters<typeof Connections>[1],
) {
  const connections = new Connections(server, limits);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, connections, port: (server.address() as AddressInfo).port };
}

const answerAtOnce: RequestListener = (_, response) => response.end('answer');

interface Served {
  readonly server: HttpServer | HttpsServer;
  readonly port: number;
}

/** An accepted connection without any request. */
async function connect({ server, port }: Served, localAddress = '127.0.0.1'): Promise<Socket> {
  const accepted = once(server, 'connection');
  const client = createConnection({ port, host: '127.0.0.1', localAddress });
  client.on('error', () => {});
  clients.push(client);
  await accepted;
  return client.resume();
}

async function makeSecureServer(listener = answerAtOnce): Promise<HttpsServer> {
  const { certificate: cert, key } = await issue(
    await makeAuthority('test', new Date()),
    ['127.0.0.1'],
    new Date(),
  );
  return createSecureServer({ cert, key }, listener);
}

function ask(port: number, agent: Agent | false = false): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, agent }, resolve).on('error', reject).end();
  });
}

test('a connection without a request does not delay the end of a server', async () => {
  const served = await serve(createServer(answerAtOnce));
  const closed = once(await connect(served), 'close');
  await served.connections.end();
  await closed;
});

test('an idle connection does not delay it', async () => {
  const { port, connections } = await serve(createServer(answerAtOnce));
  const agent = new Agent({ keepAlive: true });
  expect(await text(await ask(port, agent))).toBe('answer');
  await connections.end();
  agent.destroy();
});

test.each(['before', 'after'] as const)(
  'a connection %s its TLS handshake does not delay it',
  async (when) => {
    const served = await serve(await makeSecureServer());
    const client = await connect(served);
    if (when === 'after') {
      const agreed = once(served.server, 'secureConnection');
      connectSecurely({ socket: client, rejectUnauthorized: false }).on('error', () => {});
      await agreed;
    }
    await served.connections.end();
  },
);

test('a request in progress is answered, beside idle connections', async () => {
  const server = createServer();
  const served = await serve(server);
  await connect(served);
  const asked = once(server, 'request');
  const answer = ask(served.port, new Agent({ keepAlive: true }));
  const [, response] = (await asked) as Parameters<RequestListener>;
  const ended = served.connections.end();
  response.end('late');
  expect(await text(await answer)).toBe('late');
  await ended;
});

test('a connection whose answer does not come is closed', async () => {
  const server = createServer();
  const served = await serve(server, { shutdownTimeout: 10 });
  const asked = once(server, 'request');
  const refused = expect(ask(served.port)).rejects.toThrow('socket hang up');
  await asked;
  await served.connections.end();
  await refused;
});

describe('with as many connections as its limit', () => {
  const ATTACKER = '127.0.0.2';
  const limits = { maximum: 4, shutdownTimeout: 10 };

  const connectMany = async (served: Served, count: number, address: string) => {
    const all: Socket[] = [];
    for (let index = 0; index < count; index++) all.push(await connect(served, address));
    return all;
  };

  const head = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n';

  test('the address with the most loses the oldest, and the new one is served', async () => {
    const served = await serve(createServer(answerAtOnce), limits);
    const other = await connect(served);
    const [first, second] = await connectMany(served, 3, ATTACKER);
    const closed = once(first as Socket, 'close');
    expect(await text(await ask(served.port))).toBe('answer');
    await closed;
    expect([other.destroyed, second?.destroyed]).toEqual([false, false]);
    await served.connections.end();
  });

  test('a TLS server closes an idle one before one with a request', async () => {
    const server = await makeSecureServer(() => {});
    const served = await serve(server, limits);
    await connect(served);
    const [busy, idle] = await connectMany(served, 3, ATTACKER);
    const asked = once(server, 'request');
    connectSecurely({ socket: busy as Socket, rejectUnauthorized: false }).write(head);
    await asked;
    const closed = once(idle as Socket, 'close');
    await connect(served);
    await closed;
    expect(busy?.destroyed).toBe(false);
    await served.connections.end();
  });

  test('it closes one with a request if the address has no idle one', async () => {
    const server = createServer(() => {});
    const served = await serve(server, limits);
    const all = await connectMany(served, 4, ATTACKER);
    for (const client of all) {
      const asked = once(server, 'request');
      client.write(head);
      await asked;
    }
    const closed = once(all[0] as Socket, 'close');
    await connect(served);
    await closed;
    await served.connections.end();
  });
});
