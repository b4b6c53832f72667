import { mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Log } from './log.js';

let directory: string;
let file: string;

beforeEach(() => {
  directory = mkdtempSync(path.join(tmpdir(), 'log-'));
  file = path.join(directory, 'log');
});
afterEach(() => rmSync(directory, { recursive: true }));

function linesOf(where = file): Record<string, unknown>[] {
  const lines = readFileSync(where, 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

function messagesOf(where = file): unknown[] {
  return linesOf(where).map(({ msg }) => msg);
}

test('a line is a JSON object with level, time and the fields of its logger', () => {
  const { logger } = new Log({ file });
  logger.child({ session: 7 }).info({ pid: 1 }, 'said');
  expect(linesOf()).toEqual([
    { level: 30, time: expect.stringMatching(/^\d{4}-.*Z$/), session: 7, pid: 1, msg: 'said' },
  ]);
});

test('a change of the level applies to existing children', () => {
  const log = new Log({ file, level: 'warn' });
  const child = log.logger.child({ session: 1 });
  child.info('too little');
  log.reopen({ file, level: 'debug' });
  child.debug('enough');
  child.trace('too little');
  log.reopen({ file });
  child.debug('too little');
  child.info('enough by default');
  expect(messagesOf()).toEqual(['enough', 'enough by default']);
});

test('a file that was moved away is created again', () => {
  const log = new Log({ file });
  log.logger.info('before');
  renameSync(file, `${file}.1`);
  log.logger.info('still there');
  log.reopen({ file });
  log.logger.info('after');
  expect([messagesOf(`${file}.1`), messagesOf()]).toEqual([['before', 'still there'], ['after']]);
});

test('a file that cannot be opened is refused, and logging continues to the former one', () => {
  const missing = path.join(directory, 'missing', 'log');
  const sentence =
    `The log ${missing} cannot be opened: no such file or directory. Set ` +
    `another file with --log.`;
  expect(() => new Log({ file: missing })).toThrow(sentence);
  const log = new Log({ file });
  expect(() => log.reopen({ file: missing, level: 'fatal' })).toThrow(sentence);
  log.logger.info('here');
  expect(messagesOf()).toEqual(['here']);
});

test('a full disk does not end the process', async () => {
  const log = new Log({ file: '/dev/full' });
  for (let line = 0; line < 3; line++) log.logger.info('lost');
  await new Promise((resolve) => setImmediate(resolve));
  log.reopen({ file });
  log.logger.info('here');
  expect(messagesOf()).toEqual(['here']);
});

test('without a file, nothing is written', () => {
  const log = new Log({ file: undefined });
  log.logger.error('unheard');
  log.reopen({ file });
  log.logger.error('heard');
  expect(messagesOf()).toEqual(['heard']);
});
