import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Server } from 'node:net';
import { type Address, addressText } from '@nvidia-virtual/service/configuration/kinds';
import { systemReason } from '@nvidia-virtual/service/errors';
import type { Logger } from 'pino';
import { SchedulerError, sentence } from './errors.js';
import { RequestBodies } from './request-bodies.js';

/**
 * Handles the JSON body of a request and returns the JSON answer. @throws Error if the request is
 * malformed
 */
export type Route = (body: Buffer) => object | Promise<object>;

interface JsonServiceOptions {
  readonly routes: Readonly<Record<string, Route>>;
  readonly logger: Logger;
  /** Called after each answer. */
  readonly answered: (path: string, status: number, seconds: number) => void;
}

/** Answers POST requests; others are refused with a message. */
export function jsonListener({ routes, logger, answered }: JsonServiceOptions): RequestListener {
  const bodies = new RequestBodies();
  return (request, response) => {
    const start = performance.now();
    const path = (request.url ?? '').split('?')[0] ?? '';
    const route = routes[path];
    response.on('error', () => {});
    void answerTo(request, route, bodies).then(
      (answer) => respond(response, 200, answer),
      (error: Error) => {
        const reason = sentence('REQUEST_BROKEN', { path, reason: error.message });
        logger.warn(reason);
        response.shouldKeepAlive &&= request.complete; // what is too long is not read to its end
        respond(response, error instanceof NotServed ? 404 : 400, { Error: reason });
      },
    );
    response.on('close', () =>
      answered(
        route === undefined ? 'other' : path,
        response.statusCode,
        (performance.now() - start) / 1000,
      ),
    );
  };
}

/** @throws SchedulerError NOT_SERVED */
export async function listen(server: Server, address: Address): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) =>
      reject(
        new SchedulerError('NOT_SERVED', {
          address: addressText(address),
          reason: systemReason(error),
        }),
      ),
    );
    server.listen(address, resolve);
  });
}

class NotServed extends Error {}

async function answerTo(
  request: IncomingMessage,
  route: Route | undefined,
  bodies: RequestBodies,
): Promise<object> {
  if (route === undefined || request.method !== 'POST')
    throw new NotServed('nothing is served there');
  return route(await bodies.receive(request));
}

/** @throws Error if it is not a JSON object */
export function parseObject<T extends object>(body: Buffer): T {
  const object: unknown = JSON.parse(body.toString());
  if (typeof object !== 'object' || object === null) throw new Error('it is not a JSON object');
  return object as T;
}

function respond(response: ServerResponse, status: number, answer: object): void {
  const body = Buffer.from(JSON.stringify(answer));
  response
    .writeHead(status, { 'content-type': 'application/json', 'content-length': body.length })
    .end(body);
}
