import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Server } from 'node:net';
import { type Address, addressText } from '@nvidia-virtual/gpu-proxy/configuration/kinds';
import { systemReason } from '@nvidia-virtual/gpu-proxy/errors';
import type { Logger } from 'pino';
import { SchedulerError, sentence } from './errors.js';
import { WORD } from './words.js';

/** An answer that is JSON already: where it is about thousands of nodes, making objects of them first costs more than all else. */
export class JsonText {
  readonly bytes: Buffer;

  /** @param parts are copied: whoever wrote them may write the next. */
  constructor(...parts: readonly (string | Uint8Array)[]) {
    this.bytes = Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)));
  }
}

/** What is asked at a path, in JSON, and answered in JSON. @throws Error what is wrong with the request */
export type Route = (body: Buffer) => object | Promise<object>;

export interface JsonServiceOptions {
  readonly routes: Readonly<Record<string, Route>>;
  readonly logger: Logger;
  /** Called for each request when it was answered. */
  readonly answered: (path: string, status: number, seconds: number) => void;
}

/** A pod has at most some MiB, and the names of 5,000 nodes have a few hundred KiB. */
const MOST_BYTES = 16 * 2 ** 20;

/** Answers POST requests; what cannot be answered is refused with a sentence. */
export function jsonListener({ routes, logger, answered }: JsonServiceOptions): RequestListener {
  return (request, response) => {
    const start = performance.now();
    const path = (request.url ?? '').split('?')[0] ?? '';
    const route = routes[path];
    response.on('error', () => {});
    void answerTo(request, route).then(
      (answer) => respond(response, 200, answer),
      (error: Error) => {
        const reason = sentence('REQUEST_BROKEN', { path, reason: error.message });
        logger.warn(reason);
        response.shouldKeepAlive &&= request.complete; // what is too long is not read to its end
        respond(response, error instanceof NotServed ? 404 : 400, { Error: reason });
      },
    );
    response.on('close', () => answered(route === undefined ? 'other' : path, response.statusCode, (performance.now() - start) / 1000));
  };
}

/** @throws SchedulerError NOT_SERVED */
export async function listen(server: Server, address: Address, option: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) =>
      reject(new SchedulerError('NOT_SERVED', { address: addressText(address), reason: systemReason(error), option })),
    );
    server.listen(address, resolve);
  });
}

class NotServed extends Error {}

async function answerTo(request: IncomingMessage, route: Route | undefined): Promise<object> {
  if (route === undefined || request.method !== 'POST') throw new NotServed('nothing is served there');
  return route(await bodyOf(request));
}

/** By events: to wait for one piece after another takes a tenth of a millisecond longer. */
function bodyOf(request: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
      chunks.push(chunk);
      if (length <= MOST_BYTES) return;
      request.pause();
      reject(new Error(`it has more than ${MOST_BYTES} bytes`));
    });
    // A word more than there is, for who reads words; else it would be copied for that.
    request.on('end', () => resolve(Buffer.concat(chunks, length + WORD).subarray(0, length))).on('error', reject);
  });
}

/** @throws Error when it is none */
export function parseObject<T extends object>(body: Buffer): T {
  const object: unknown = JSON.parse(body.toString());
  if (typeof object !== 'object' || object === null) throw new Error('it is no JSON object');
  return object as T;
}

function respond(response: ServerResponse, status: number, answer: object): void {
  const body = answer instanceof JsonText ? answer.bytes : Buffer.from(JSON.stringify(answer));
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': body.length }).end(body);
}
