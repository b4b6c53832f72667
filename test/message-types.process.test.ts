import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { runCommand } from '@nvidia-virtual/toolchain/command';
import { REPOSITORY } from './paths.js';

// The types of gRPC messages are written by hand
// (docs/decisions/2026-11-23-message-types-by-hand.md). Each must have the fields and types that
// the generator of @grpc/proto-loader produces.

let directory: string;

beforeEach(() => {
  const parent = path.join(REPOSITORY, 'build', 'message-types');
  mkdirSync(parent, { recursive: true });
  directory = mkdtempSync(path.join(parent, 'run-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

const GENERATOR = path.join(REPOSITORY, 'node_modules', '.bin', 'proto-loader-gen-types');
const COMPILER = path.join(REPOSITORY, 'node_modules', '.bin', 'tsc');

interface Protocol {
  readonly proto: string;
  /** Directory of the generated messages. */
  readonly generated: string;
  /** Module of the handwritten types. */
  readonly module: string;
  /** Names of messages in the module, by their names in the protocol. */
  readonly messages: Readonly<Record<string, string>>;
}

const ADMIN: Protocol = {
  proto: 'node-state/proto/admin.proto',
  generated: 'nvidia_virtual/admin/v1',
  module: 'node-state/src/admin/messages.js',
  messages: {
    Gpu: 'GpuMessage',
    Limits: 'LimitsMessage',
    TimeUse: 'TimeUseMessage',
    Session: 'SessionMessage',
    Allocation: 'AllocationMessage',
    NodeUse: 'NodeUseMessage',
  },
};
const DEVICE_PLUGIN: Protocol = {
  proto: 'device-plugin/proto/device_plugin.proto',
  generated: 'v1beta1',
  module: 'device-plugin/src/protocol.js',
  messages: {
    AllocateRequest: 'AllocateRequest',
    AllocateResponse: 'AllocateResponse',
    RegisterRequest: 'RegisterRequest',
    DevicePluginOptions: 'DevicePluginOptions',
  },
};

/**
 * A message as our processes send it: all messages in it are present, without the name of a
 * `oneof`.
 */
const SENT = `type Sent<T> = T extends readonly (infer Each)[]
  ? Sent<Each>[]
  : T extends object
    ? { [K in keyof T as K extends \`_\${string}\` ? never : K]: Sent<Exclude<T[K], null>> }
    : T;`;

/** The compiler's errors about the handwritten types compared with the generated ones. */
async function compare({ proto, generated, module, messages }: Protocol): Promise<string> {
  const file = path.join(REPOSITORY, proto);
  const options = ['--longs=Number', '--enums=String', '--defaults', '--oneofs'];
  const grpc = ['--grpcLib=@grpc/grpc-js', '--importFileExtension=.js'];
  const place = [`--outDir=${directory}`, '-I', path.dirname(file), '--', path.basename(file)];
  const made = await runCommand(GENERATOR, [...options, ...grpc, ...place]);
  expect([made.status, made.output]).toEqual([0, expect.anything()]);
  const lines = Object.entries(messages).flatMap(([theirs, ours]) => [
    `import type { ${theirs}__Output } from './${generated}/${theirs}.js';`,
    `import type { ${ours} as Our${ours} } from '${path.join(REPOSITORY, module)}';`,
    `export const ${theirs}Fields: keyof Our${ours} = '' as keyof Sent<${theirs}__Output>;`,
    `export const ${theirs}Value: Our${ours} = {} as Sent<${theirs}__Output>;`,
  ]);
  const source = path.join(directory, 'compare.ts');
  writeFileSync(source, [SENT, ...lines].join('\n'));
  const strict = ['--noEmit', '--strict', '--skipLibCheck', '--target', 'es2022'];
  const modules = ['--module', 'nodenext', '--moduleResolution', 'nodenext'];
  return (await runCommand(COMPILER, ['--ignoreConfig', ...strict, ...modules, source])).output;
}

test.each([
  ['admin.proto', ADMIN],
  ['device_plugin.proto', DEVICE_PLUGIN],
])('messages of %s have the types of the generator', async (_, protocol) => {
  expect(await compare(protocol)).toBe('');
});
