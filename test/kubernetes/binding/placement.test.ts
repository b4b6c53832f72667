import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import {
  arenaPayers,
  canReadPayers,
  nodePayer,
} from '@nvidia-virtual/gpu-proxy/testing/page-payers';
import { eventually } from '@nvidia-virtual/service/testing/eventually';
import { ControlPlane } from '../control-plane.js';
import type { CgroupDriver } from './pod-cgroup.js';
import { BindingScene, HOLDING } from './scene.js';

let plane: ControlPlane;
let scene: BindingScene;

beforeAll(async () => {
  plane = await ControlPlane.start();
});
afterAll(() => plane?.stop());

async function begin(driver: CgroupDriver): Promise<void> {
  scene = new BindingScene('placement', plane, driver);
  await scene.kubelet.start();
}
afterEach(() => scene.end());

function cgroupsOf(pid: number): string[] {
  const lines = readFileSync(`/proc/${pid}/cgroup`, 'utf8').trim().split('\n');
  return lines.map((line) => line.split(':').slice(2).join(':'));
}

async function workerOf(podUid: string): Promise<number> {
  const allocation = (await scene.allocations()).find(({ owner }) => owner?.podUid === podUid);
  return allocation?.sessions[0]?.workerPid as number;
}

test.each([
  ['0', 'cgroupfs'],
  ['1', 'cgroupfs'],
  ['0', 'systemd'],
  ['1', 'systemd'],
] as const)(
  'with %s warm workers, a worker is in a cgroup below the pod of its program, under %s',
  async (warm, driver) => {
    await begin(driver);
    await scene.serve({}, '--warm-workers', warm);
    if (warm === '1') await scene.warmWorkerReady();
    const pod = await scene.createPod('placed', { slots: 1 });
    scene.kubelet.give('placed', 'main', ['a']);
    const program = scene.run(pod, scene.allocate(['a']), HOLDING);
    await program.printed('got 0');
    const uid = pod.metadata?.uid as string;
    const beneath = scene.cgroups
      .pod(uid)
      .map((directory) => path.join(directory, 'nvidia-virtual'));
    const worker = await workerOf(uid);
    for (const directory of beneath)
      expect(
        readFileSync(path.join(directory, 'cgroup.procs'), 'utf8').trim().split('\n'),
      ).toContain(String(worker));
    const pods = beneath.map((directory) => path.basename(path.dirname(directory)));
    const others = cgroupsOf(worker).filter((one) => !pods.some((pod) => one.includes(pod)));
    for (const one of others) expect(one).toMatch(/(^|\/)nvidia-virtual(-workers)?$|^\/$/);
    expect(await program.finish()).toContain('then 0');
  },
);

/**
 * A kubelet gives gpu-proxy -997, for which CAP_SYS_RESOURCE is required. A process that may raise
 * it above 0 may also lower it again.
 */
const PROXY_SCORE = '100';

function oomScore(pid: number): string {
  return readFileSync(`/proc/${pid}/oom_score_adj`, 'utf8').trim();
}

test.each(['0', '1'])(
  'with %s warm workers, the OOM killer prefers a worker as much as its program',
  async (warm) => {
    await begin('cgroupfs');
    await scene.serve({}, '--warm-workers', warm, '--slots-per-gpu', '4');
    writeFileSync(`/proc/${scene.proxy.process.pid}/oom_score_adj`, PROXY_SCORE);
    if (warm === '1') await scene.warmWorkerReady();
    for (const [name, slot, score] of [
      ['besteffort', 'a', '1000'],
      ['guaranteed', 'b', '0'],
    ] as const) {
      const pod = await scene.createPod(name, { slots: 1 });
      scene.kubelet.give(name, 'main', [slot]);
      const set = ['sh', '-c', 'echo $0 > /proc/self/oom_score_adj; exec "$@"', score];
      const program = scene.run(pod, scene.allocate([slot]), HOLDING, set);
      await program.printed('got 0');
      const worker = await workerOf(pod.metadata?.uid as string);
      await eventually(() => expect(oomScore(worker)).toBe(score));
      expect(await program.finish()).toContain('then 0');
    }
  },
);

test.each(['0', '1'])(
  'with %s warm workers, a worker sees neither the host nor other allocations, and serves',
  async (warm) => {
    await begin('cgroupfs');
    await scene.serve({}, '--warm-workers', warm);
    if (warm === '1') await scene.warmWorkerReady();
    const pod = await scene.createPod('shut-in', { slots: 1 });
    scene.kubelet.give('shut-in', 'main', ['a']);
    const program = scene.run(pod, scene.allocate(['a']), HOLDING);
    await program.printed('got 0');
    const root = `/proc/${await workerOf(pod.metadata?.uid as string)}/root`;
    expect(existsSync(path.join(root, 'root'))).toBe(false);
    expect(readdirSync(path.join(root, scene.state)).sort()).toEqual([
      'allocations',
      'arbiter',
      'simulated-gpus',
    ]);
    expect(readdirSync(path.join(root, scene.state, 'allocations'))).not.toContain(
      (await scene.allocations())[0]?.id,
    );
    // The restarted arbiter is found.
    await eventually(() => process.kill(scene.arbiterPid(), 'SIGKILL'));
    expect(await program.finish()).toContain('then 0');
  },
);

test('the OOM killer spares processes that serve all tenants as much as gpu-proxy', async () => {
  await begin('cgroupfs');
  await scene.serve();
  // A process that was started before has inherited nothing.
  writeFileSync(`/proc/${scene.proxy.process.pid}/oom_score_adj`, PROXY_SCORE);
  await eventually(() => process.kill(scene.arbiterPid(), 'SIGKILL'));
  await eventually(() => expect(oomScore(scene.arbiterPid())).toBe(PROXY_SCORE));
});

test('the arbiter is in a cgroup of the node', async () => {
  await begin('cgroupfs');
  await scene.serve();
  const cgroups = () => cgroupsOf(scene.arbiterPid());
  await eventually(() =>
    expect(cgroups().some((one) => one.endsWith('/nvidia-virtual-services'))).toBe(true),
  );
});

(canReadPayers ? test : test.skip)(
  'memory of a suspended pod is charged to the node, and not to the pod',
  async () => {
    await begin('cgroupfs');
    await scene.serve();
    const pod = await scene.createPod('out', { slots: 1 });
    scene.kubelet.give('out', 'main', ['a']);
    const program = scene.run(pod, scene.allocate(['a']), HOLDING);
    await program.printed('got 0');
    const uid = pod.metadata?.uid as string;
    const [allocation] = await scene.allocations();
    const suspended = await scene.call('suspendAllocation', allocation?.id as string);
    expect(suspended.outBytes).toBeGreaterThanOrEqual(100 * 2 ** 20);
    expect(arenaPayers(await workerOf(uid))).toEqual(new Set([nodePayer()]));
    await scene.call('resumeAllocation', allocation?.id as string);
    expect(await program.finish()).toContain('then 0');
  },
);
