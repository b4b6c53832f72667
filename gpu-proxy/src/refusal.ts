import type { Socket } from 'node:net';

/** wire/message.h and wire/hello.h: a welcome that says no, which every build of our libcuda.so.1 reads. */
const WELCOME = 2;
const HELLO_VERSION = 1;
const HEADER_BYTES = 16;
const WELCOME_BYTES = 24;
/** What a program without a GPU gets. */
const CUDA_ERROR_NO_DEVICE = 100;

/** So many connections at a time are told why; who floods is sent away without a word. */
const MOST_PENDING = 256;
const PATIENCE_MS = 5000;
let pending = 0;

/**
 * Tells the program at the other end why it gets no GPU: cuInit answers CUDA_ERROR_NO_DEVICE, and CUDA_LOG_FILE has the sentence. It says its
 * hello first: one that is not read would make the system throw the answer away.
 */
export function sendRefusal(connection: Socket, sentence: string): void {
  if (pending >= MOST_PENDING) {
    connection.destroy();
    return;
  }
  pending++;
  const patience = setTimeout(() => connection.destroy(), PATIENCE_MS).unref();
  connection.once('close', () => {
    pending--;
    clearTimeout(patience);
  });
  connection.once('data', () => connection.end(refusalMessage(sentence)));
  connection.resume();
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
