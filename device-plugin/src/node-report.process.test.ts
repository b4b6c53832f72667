import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { writeNodeReport } from './node-report.js';
import { NodeUnderTest } from './testing/node-under-test.js';

let node: NodeUnderTest;
let directory: string;
let file: string;

beforeEach(async () => {
  node = new NodeUnderTest();
  await node.kubelet.start();
  directory = mkdtempSync(path.join(tmpdir(), 'node-report-'));
  file = path.join(directory, 'report');
});
afterEach(async () => {
  rmSync(directory, { recursive: true });
  await node.remove();
});

/** The report of a node that needs no driver. */
async function reportOf(more: { report?: string; allow?: ['nvidia-plugin'] } = {}) {
  await writeNodeReport({
    ...{ node: 'node-1', backend: 'simulated', directory, gpu: undefined, allow: undefined },
    ...{ kubeletRoot: node.kubelet.root, report: file, ...more },
  });
  return readFileSync(file, 'utf8');
}

test('a node that lacks nothing has an empty report', async () => {
  expect(await reportOf()).toBe('');
});

test("NVIDIA's device plugin is a line of the report, unless it is allowed", async () => {
  node.kubelet.allocatable = [{ resourceName: 'nvidia.com/gpu', deviceIds: ['0'] }];
  expect(await reportOf()).toMatch(/^Node node-1 offers no nvidia-virtual\/gpu: a plugin .*\n$/);
  expect(await reportOf({ allow: ['nvidia-plugin'] })).toBe('');
});

test('a report that cannot be written is named', async () => {
  await expect(reportOf({ report: path.join(directory, 'none', 'x') })).rejects.toMatchObject({
    code: 'NODE_REPORT_NOT_WRITTEN',
  });
});
