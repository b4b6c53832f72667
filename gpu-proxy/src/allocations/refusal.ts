import type { Socket } from 'node:net';
import type { ErrorCode, ProxyError } from '@nvidia-virtual/service/errors';
import type { Closer } from './closer.js';

/**
 * Layout of a negative welcome, from wire/message.h and wire/hello.h. Every build of our
 * libcuda.so.1 reads it.
 */
const WELCOME = 2;
const HELLO_VERSION = 1;
const HEADER_BYTES = 16;
const WELCOME_BYTES = 24;
/** The result of cuInit on a machine without a GPU. */
const CUDA_ERROR_NO_DEVICE = 100;
/** Reasons that a pod causes itself. It is told each time; an operator has nothing to do. */
const CAUSED_BY_POD: ReadonlySet<ErrorCode> = new Set([
  'SESSIONS_FULL',
  'ALLOCATION_DRAINING',
  'PEER_OTHER_POD',
  'PEER_OTHER_CONTAINER',
]);

/**
 * Tells a client why it gets no GPU: its cuInit returns CUDA_ERROR_NO_DEVICE and logs the reason to
 * CUDA_LOG_FILE. The closer sends it, because it must first read the client's hello.
 */
export function sendRefusal(closer: Closer, connection: Socket, refusal: ProxyError): void {
  closer.refusals[CAUSED_BY_POD.has(refusal.code) ? 'pod' : 'node']++;
  closer.answer(connection, refusalMessage(refusal.message));
}

function refusalMessage(sentence: string): Buffer {
  const text = Buffer.from(sentence);
  const head = Buffer.alloc(HEADER_BYTES + WELCOME_BYTES);
  head.writeUInt32LE(WELCOME, 0);
  head.writeUInt32LE(WELCOME_BYTES + text.length, 4);
  head.writeUInt32LE(HELLO_VERSION, HEADER_BYTES);
  head.writeInt32LE(CUDA_ERROR_NO_DEVICE, HEADER_BYTES + 4);
  return Buffer.concat([head, text]);
}
