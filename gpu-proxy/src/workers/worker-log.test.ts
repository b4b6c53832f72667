import { pino } from 'pino';
import { WorkerLog } from './worker-log.js';

test('a limited number of lines is logged, each truncated, and the others are counted', () => {
  const said: { msg: string; lines?: number; session?: number }[] = [];
  const logger = pino({ base: null }, { write: (line: string) => said.push(JSON.parse(line)) });
  const log = new WorkerLog(logger);
  for (let line = 0; line < 250; line++)
    log.add(logger.child({ session: line % 2 }), `${line} ${'x'.repeat(5000)}`);
  expect([said.length, said[0]?.session, said[99]?.session, said[99]?.msg.length]).toEqual([
    100, 0, 1, 2048,
  ]);
  log.end();
  expect(said.slice(100)).toEqual([
    expect.objectContaining({ lines: 150, msg: expect.stringContaining('were not logged') }),
  ]);
  log.end();
  log.add(logger, 'again');
  expect(said.slice(101)).toEqual([expect.objectContaining({ msg: 'again' })]);
  log.end();
  expect(said).toHaveLength(102);
});
