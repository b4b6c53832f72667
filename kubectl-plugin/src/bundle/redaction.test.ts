import { Redaction } from './redaction.js';

const base64 = (text: string) => Buffer.from(text).toString('base64');
const secret = (data: Record<string, string>, type = 'Opaque') => ({
  type,
  data: Object.fromEntries(Object.entries(data).map(([key, text]) => [key, base64(text)])),
});
const none = new Redaction([]);

test.each([
  'password=hunter2-planted',
  '{"password":"hunter2-planted","a":1}',
  'requirepass: x, redis_password: "hunter2-planted"',
  'Authorization: Bearer hunter2-planted',
  'redis://default:hunter2-planted@redis:6379',
  'API_KEY=hunter2-planted rest',
  '-----BEGIN RSA PRIVATE KEY-----\nhunter2-planted\n-----END RSA PRIVATE KEY-----',
  `token ${'eyJhbGciOiJSUzI1NiJ9'}.${'eyJodW50ZXIyLXBsYW50ZWQ'}.hunter2-planted`,
])('without knowing any Secret, it hides what looks like one: %s', (text) => {
  expect(none.text(text)).not.toContain('hunter2-planted');
});

test.each([
  'gpu-proxy serves 2 GPUs; 3 sessions, 20 % of the time',
  '/etc/nvidia-virtual/redis/password',
  'connected to redis://redis:6379',
])('it leaves other text: %s', (text) => {
  expect(none.text(text)).toBe(text);
});

test('the content of a Secret is hidden wherever it appears, in plain text and in base64', () => {
  const redaction = new Redaction([
    secret({ one: 'correct horse', two: 'first line\nsecond line\n' }),
    secret({ '.dockerconfigjson': '{"auths":{"r.example":{"password":"registry-pass"}}}' }),
  ]);
  const text = `a correct horse, ${base64('correct horse')}, second line, registry-pass`;
  expect(redaction.text(text)).toBe('a REDACTED, REDACTED, REDACTED, REDACTED');
});

test('authorities are public, and short values would hide words', () => {
  const redaction = new Redaction([secret({ 'ca.crt': 'an authority', short: 'gpu' })]);
  expect(redaction.text('an authority of a gpu')).toBe('an authority of a gpu');
});

test('in objects, it hides fields and variables that name a secret, and copies of objects', () => {
  const copy = 'kubectl.kubernetes.io/last-applied-configuration';
  const hidden = none.object({
    metadata: { managedFields: [{}], annotations: { [copy]: 'x', other: 'kept' } },
    env: [
      { name: 'DB_PASSWORD', value: 'planted' },
      { name: 'PASSWORD_FILE', value: '/etc/password' },
      { name: 'LEVEL', value: 'info' },
    ],
    token: 'planted',
    secretName: 'redis',
    count: 3,
  });
  expect(hidden).toEqual({
    metadata: { annotations: { other: 'kept' } },
    env: [
      { name: 'DB_PASSWORD', value: 'REDACTED' },
      { name: 'PASSWORD_FILE', value: '/etc/password' },
      { name: 'LEVEL', value: 'info' },
    ],
    token: 'REDACTED',
    secretName: 'redis',
    count: 3,
  });
});
