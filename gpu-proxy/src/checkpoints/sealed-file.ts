import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';

/** The key of a checkpoint. The key of each file is derived from it. */
export type Key = Buffer;

export const KEY_BYTES = 32;
const SALT_BYTES = 32;
const TAG_BYTES = 16;
const LENGTH_BYTES = 4;
/** Plain bytes of a chunk, except the last one. */
const CHUNK = 2 ** 20;
const CIPHER = 'aes-256-gcm';

/**
 * @param salt of the file, so that no nonce is used twice if a key is
 * @param name of the file, so that files of a checkpoint cannot be exchanged
 */
function deriveKey(key: Key, salt: Buffer, name: string): Buffer {
  return Buffer.from(hkdfSync('sha256', key, salt, `nvidia-virtual checkpoint ${name}`, KEY_BYTES));
}

/** Chunks cannot be exchanged, left out, or cut off at the end. */
function nonce(index: number, last: boolean): Buffer {
  const bytes = Buffer.alloc(12);
  bytes.writeUInt8(last ? 1 : 0, 0);
  bytes.writeBigUInt64BE(BigInt(index), 4);
  return bytes;
}

/**
 * Writes an encrypted and authenticated file: a salt, and chunks. Each chunk is its length, its
 * bytes and its tag.
 */
export class SealedWriter {
  readonly #file: FileHandle;
  readonly #key: Buffer;
  /** The next chunk. One buffer for all: a new one costs as much as its encryption. */
  readonly #plain = Buffer.allocUnsafeSlow(CHUNK);
  #filled = 0;
  #index = 0;

  private constructor(file: FileHandle, key: Buffer) {
    this.#file = file;
    this.#key = key;
  }

  /** @param path a file that does not exist. @throws a system error */
  static async create(path: string, key: Key, name: string): Promise<SealedWriter> {
    const salt = randomBytes(SALT_BYTES);
    const file = await open(path, 'wx', 0o600);
    return attempt(file, async () => {
      await file.writeFile(salt);
      return new SealedWriter(file, deriveKey(key, salt, name));
    });
  }

  /** `bytes` may be used again afterwards. */
  async write(bytes: Buffer): Promise<void> {
    for (let at = 0; at < bytes.length; ) {
      if (this.#filled === CHUNK) await this.#seal(false);
      const copied = bytes.copy(this.#plain, this.#filled, at);
      this.#filled += copied;
      at += copied;
    }
  }

  /** Writes the last chunk, and waits until all is on the disk. */
  async finish(): Promise<void> {
    await this.#seal(true);
    await this.#file.sync();
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  async #seal(last: boolean): Promise<void> {
    const cipher = createCipheriv(CIPHER, this.#key, nonce(this.#index++, last));
    const length = Buffer.alloc(LENGTH_BYTES);
    length.writeUInt32BE(this.#filled);
    await this.#file.writeFile(length);
    await this.#file.writeFile(cipher.update(this.#plain.subarray(0, this.#filled)));
    cipher.final(); // has no bytes in this mode
    await this.#file.writeFile(cipher.getAuthTag());
    this.#filled = 0;
  }
}

/** Reads such a file, and returns only what is authentic. */
export class SealedReader {
  readonly #file: FileHandle;
  readonly #key: Buffer;
  readonly #size: number;
  readonly #sealed = Buffer.allocUnsafeSlow(CHUNK);
  #at = SALT_BYTES;
  #index = 0;
  #plain: Buffer = Buffer.alloc(0);

  private constructor(file: FileHandle, key: Buffer, size: number) {
    this.#file = file;
    this.#key = key;
    this.#size = size;
  }

  /** Follows no link. @throws a system error */
  static async open(path: string, key: Key, name: string): Promise<SealedReader> {
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
    return attempt(file, async () => {
      const { buffer: salt } = await file.read(Buffer.alloc(SALT_BYTES), 0, SALT_BYTES, 0);
      return new SealedReader(file, deriveKey(key, salt, name), (await file.stat()).size);
    });
  }

  /** @throws Error if the key is wrong, or the file is damaged or too short */
  async read(bytes: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    for (let left = bytes; left > 0; left -= (parts.at(-1) as Buffer).length)
      parts.push(await this.readSome(left));
    return Buffer.concat(parts);
  }

  /** Between one byte and `most`. @throws as read() */
  async readSome(most: number): Promise<Buffer> {
    while (this.#plain.length === 0) this.#plain = await this.#open();
    const some = this.#plain.subarray(0, most);
    this.#plain = this.#plain.subarray(some.length);
    return some;
  }

  /** Requires that everything was read. @throws Error if there is more */
  finish(): void {
    if (this.#at !== this.#size || this.#plain.length > 0) throw damaged();
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  async #open(): Promise<Buffer> {
    const length = (await this.#take(LENGTH_BYTES)).readUInt32BE();
    if (length > CHUNK) throw damaged();
    const sealed = await this.#take(length, this.#sealed);
    const tag = await this.#take(TAG_BYTES);
    const last = this.#at === this.#size;
    const decipher = createDecipheriv(CIPHER, this.#key, nonce(this.#index++, last));
    decipher.setAuthTag(tag);
    const plain = decipher.update(sealed);
    try {
      decipher.final(); // has no bytes in this mode
    } catch {
      throw damaged();
    }
    return plain;
  }

  async #take(bytes: number, into = Buffer.alloc(bytes)): Promise<Buffer> {
    const { bytesRead } = await this.#file.read(into, 0, bytes, this.#at);
    if (bytesRead !== bytes) throw damaged();
    this.#at += bytes;
    return into.subarray(0, bytes);
  }
}

/** Closes the file if that fails. */
async function attempt<T>(file: FileHandle, make: () => Promise<T>): Promise<T> {
  try {
    return await make();
  } catch (error) {
    await file.close();
    throw error;
  }
}

function damaged(): Error {
  return new Error('the key is not the right one, or the file is damaged');
}
