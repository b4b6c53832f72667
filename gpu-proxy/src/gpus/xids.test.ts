import { readFileSync } from 'node:fs';
import path from 'node:path';
import { KNOWN_XIDS, parseXids, XidCounts, xidFact } from './xids.js';

const PAGE = path.resolve(import.meta.dirname, '../../../docs/gpu-failures.md');

test('docs/gpu-failures.md lists the known Xids with meaning and consequence', () => {
  const rows = readFileSync(PAGE, 'utf8').match(/^\| \d+ .*\|$/gm);
  expect(rows).toEqual(
    KNOWN_XIDS.map((xid) => `| ${xid} | ${xidFact(xid).meaning} | ${xidFact(xid).consequence} |`),
  );
});

test('an unknown Xid leads to a probe', () => {
  expect(xidFact(9999).consequence).toBe('probe');
});

test('known Xids count from 0, unknown ones from their first occurrence', () => {
  const counts = new XidCounts();
  for (const xid of [79, 79, 9999]) counts.add({ gpu: 'GPU-1', xid, count: 2 });
  expect([79, 9999, 13, 9998].map((xid) => counts.of('GPU-1').get(xid))).toEqual([
    4,
    2,
    0,
    undefined,
  ]);
  expect(counts.of('GPU-2').get(79)).toBe(0);
});

test('a line without Xids has none', () => {
  expect(parseXids('{"gpus":[{"uuid":"GPU-1","processes":[]}]}')).toEqual([]);
  expect(
    parseXids('{"gpus":[{"uuid":"GPU-1","processes":[],"xids":[{"xid":31,"count":2}]}]}'),
  ).toEqual([{ gpu: 'GPU-1', xid: 31, count: 2 }]);
});
