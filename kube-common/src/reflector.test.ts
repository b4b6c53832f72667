import { Readable } from 'node:stream';
import { eventually } from '@nvidia-virtual/service/testing/eventually';
import { pino } from 'pino';
import type { ApiServer } from './api-server.js';
import { Reflector } from './reflector.js';

const TOO_OLD = { type: 'ERROR', object: { code: 410, message: 'too old resource version' } };

test.each([
  ['ends', []],
  ['is too old', [`${JSON.stringify(TOO_OLD)}\n`]],
])('a server whose each watch %s at once is asked once a second', async (_, lines) => {
  const times: number[] = [];
  const api = {
    request: async () => ({ metadata: { resourceVersion: '1' }, items: [] }),
    stream: async () => {
      times.push(performance.now());
      return Readable.from(lines);
    },
  } as unknown as ApiServer;
  const reflector = new Reflector<object, object>({
    ...{ api, path: '/api/v1/pods', read: (pod) => pod, logger: pino({ enabled: false }) },
    reflection: { replace: () => {}, put: () => {}, remove: () => {} },
  });
  const start = performance.now();
  const ran = reflector.run();
  await eventually(() => expect(times.length).toBeGreaterThan(1));
  reflector.stop();
  await ran;
  const [, second = 0] = times;
  expect(second - start).toBeGreaterThan(900);
});
