import { spawnSync } from 'node:child_process';
import { pino } from 'pino';
import { loadConfiguration } from './configuration.js';
import { type ConfigurationChange, ConfigurationStore } from './store.js';

function storeWithLog() {
  const environment: NodeJS.ProcessEnv = {};
  const lines: Record<string, unknown>[] = [];
  const logger = pino(
    {},
    { write: (line: string) => lines.push(JSON.parse(line) as Record<string, unknown>) },
  );
  const store = new ConfigurationStore(() => loadConfiguration({ flags: {}, environment }));
  const changes: ConfigurationChange[] = [];
  store.on('reloaded', (change) => changes.push(change));
  return { environment, lines, logger, store, changes };
}

test('reloadable options take effect at once; the others are reported', () => {
  const { environment, lines, logger, store, changes } = storeWithLog();
  Object.assign(environment, {
    NVIDIA_VIRTUAL_WARM_WORKERS: '2,0=3',
    NVIDIA_VIRTUAL_LIMITS_THREADS: '7',
    NVIDIA_VIRTUAL_NODE: 'other',
  });
  store.reload(logger);
  expect(changes).toEqual([{ changed: ['warmWorkers', 'limits.threads'], needRestart: ['node'] }]);
  expect(store.current).toMatchObject({
    node: undefined,
    warmWorkers: { all: 2 },
    limits: { threads: 7, sessions: 64 },
  });
  expect(lines.at(-1)).toMatchObject({
    level: 40,
    msg: 'node changed, which needs a restart of gpu-proxy',
  });

  store.reload(logger);
  expect(changes[1]).toEqual({ changed: [], needRestart: ['node'] });
});

test('an invalid configuration leaves the previous one in force', () => {
  const { environment, lines, logger, store, changes } = storeWithLog();
  const former = store.current;
  environment['NVIDIA_VIRTUAL_WINDOW'] = 'long';
  store.reload(logger);
  expect(store.current).toBe(former);
  expect(changes).toEqual([]);
  expect(lines).toEqual([
    expect.objectContaining({
      level: 50,
      msg: expect.stringContaining('NVIDIA_VIRTUAL_WINDOW is "long"'),
    }),
  ]);
});

const FOLLOWER = `
  import { pino } from 'pino';
  import { loadConfiguration } from '${import.meta.dirname}/configuration.js';
  import { ConfigurationStore } from '${import.meta.dirname}/store.js';
  const store = new ConfigurationStore(() => loadConfiguration({ flags: {}, environment: \
process.env }));
  const end = store.reloadOnHangup(pino({ enabled: false }));
  store.on('reloaded', (change) => {
    end();
    console.log(JSON.stringify(change));
    process.kill(process.pid, 'SIGHUP');
  });
  process.env.NVIDIA_VIRTUAL_LOG_LEVEL = 'debug';
  process.kill(process.pid, 'SIGHUP');
  setInterval(() => {}, 1000);
`;

test('SIGHUP reloads until reloading is stopped', () => {
  const child = spawnSync(process.execPath, ['--input-type=module', '-e', FOLLOWER], {
    encoding: 'utf8',
    timeout: 60_000,
  });
  expect(child).toMatchObject({
    stderr: '',
    stdout: '{"changed":["logLevel"],"needRestart":[]}\n',
    signal: 'SIGHUP',
  });
});
