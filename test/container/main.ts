import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import type { Outcome } from '../child.js';
import { lookUntil } from '../processes.js';
import { Tally } from '../tally.js';
import { playedCluster, realCluster } from './cluster.js';
import { Scene, type StartedPod, type User } from './scene.js';

const HELP = `Tests a container, made by unshare, with only the result of Allocate: it sees its \
slice, and has no other access to the GPU.
Plugin, gpu-proxy and arbiter are plain processes; the test is kubelet and runtime. Root only.
  --backend real|simulated   (default: simulated; real trains with PyTorch)
  --api real|played          (default: real, with kube-apiserver; played without it)
  --placement pod|none       where workers must be: below their pod, or in gpu-proxy's cgroup \
(default: pod)
  --cgroups cgroupfs|systemd cgroup driver of the kubelet; systemd uses cgroup version 2 if \
available (default: cgroupfs)
  --concurrent               the GPU is in concurrent mode, so the real one has MPS
  --show PATH                another file system of this machine that python3 needs; repeatable`;

const { values } = parseArgs({
  options: {
    backend: { type: 'string', default: 'simulated' },
    api: { type: 'string', default: 'real' },
    placement: { type: 'string', default: 'pod' },
    cgroups: { type: 'string', default: 'cgroupfs' },
    concurrent: { type: 'boolean', default: false },
    show: { type: 'string', multiple: true, default: [] },
    help: { type: 'boolean', default: false },
  },
});

const OUT_OF_MEMORY = 2;
const SLOTS = 2;

if (values.help) console.log(HELP);
else process.exitCode = await main(values.backend === 'real' ? 'real' : 'simulated');

async function main(backend: 'real' | 'simulated'): Promise<number> {
  const tally = new Tally();
  const directory = mkdtempSync(path.join(tmpdir(), 'cluster-'));
  const cluster = values.api === 'played' ? await playedCluster(directory) : await realCluster();
  const placement = values.placement === 'none' ? 'none' : 'pod';
  const cgroups = values.cgroups === 'systemd' ? 'systemd' : 'cgroupfs';
  const { show: shown, concurrent } = values;
  const scene = new Scene({ backend, cluster, shown, placement, cgroups, concurrent });
  try {
    await scene.start();
    const [one, other] = [await scene.startPod('one', SLOTS), await scene.startPod('other', SLOTS)];
    await judgeSlices(scene, tally, [one, other]);
    await judgeStay(scene, tally, one);
    if (backend === 'real') await judgeTraining(scene, tally, one);
    else tally.skip('training', 'the simulated GPU runs no PyTorch');
    await judgeWays(scene, tally, one);
    await judgeRelease(scene, tally, [one, other]);
  } catch (error) {
    tally.judge('the test', [(error as Error).message]);
  } finally {
    if (tally.failed) console.log(`gpu-proxy said:\n${scene.proxy.output}`);
    await scene.end();
    await cluster.stop();
    rmSync(directory, { recursive: true, force: true });
  }
  return tally.close();
}

/** Two pods at the same time, each with its own slice. */
async function judgeSlices(scene: Scene, tally: Tally, pods: readonly StartedPod[]): Promise<void> {
  const outcomes = await Promise.all(pods.map(({ container }) => container.python('slice.py')));
  const slice = await sliceOf(scene);
  for (const [index, outcome] of outcomes.entries()) {
    const saw = answerOf(outcome);
    console.log(`container ${index + 1} saw ${JSON.stringify(saw)}, its slice is ${slice}`);
    const wanted = {
      devices: 1,
      total: slice,
      deviceTotal: slice,
      copied: true,
      beyond: OUT_OF_MEMORY,
    };
    tally.judge('slice', differences(saw, wanted, outcome));
  }
}

/** A program keeps its memory while it is suspended and in files. */
async function judgeStay(scene: Scene, tally: Tally, started: StartedPod): Promise<void> {
  await scene.becomesIdle(started);
  const running = started.container.python('slice.py', { STAY: 'yes' });
  const user = await scene.user(started);
  if (values.placement === 'pod') judgePlacement(scene, tally, started, user);
  else tally.skip('placement', 'it was not asked for');
  if (values.concurrent) {
    tally.skip('suspension and files', 'in concurrent mode memory does not move', 2);
  } else {
    await judgeSuspension(scene, tally, user);
    await judgeFiles(scene, tally, user);
  }
  // If its worker has failed, it has ended.
  if (existsSync(`/proc/${user.session.pid}`)) process.kill(user.session.pid, 'SIGUSR1');
  const outcome = await running;
  const saw = answerOf(outcome);
  tally.judge('memory afterwards', differences(saw, { copied: true }, outcome));
}

/** The pod is charged for the host resources of its worker, which ends with the pod. */
function judgePlacement(scene: Scene, tally: Tally, { pod }: StartedPod, { session }: User): void {
  const cgroups = readFileSync(`/proc/${session.workerPid}/cgroup`, 'utf8').trim().split('\n');
  const beneath = scene.isBeneath(pod.metadata?.uid as string, cgroups);
  tally.judge('placement', beneath ? [] : [`the worker is in ${cgroups.join(', ')}`]);
}

async function judgeSuspension(scene: Scene, tally: Tally, user: User): Promise<void> {
  const outBytes = await scene.suspend(user);
  tally.judge('suspension', outBytes > 0 ? [] : ['no memory was out']);
}

async function judgeFiles(scene: Scene, tally: Tally, user: User): Promise<void> {
  if (values.placement === 'none')
    return tally.skip('files', 'CRIU is tried in the room of a worker');
  if (!scene.hasCriu) return tally.skip('files', 'CRIU is not installed beside the worker');
  const problems: string[] = [];
  await scene.writeAndContinue(user).catch((error: Error) => problems.push(error.message));
  tally.judge('files', problems);
}

async function judgeTraining(scene: Scene, tally: Tally, { container }: StartedPod): Promise<void> {
  const outcome = await container.python('train.py', { PYTHONDONTWRITEBYTECODE: '1' });
  const saw = answerOf(outcome);
  const slice = await sliceOf(scene);
  console.log(`PyTorch saw ${JSON.stringify(saw)}, its slice is ${slice}`);
  const problems = differences(
    saw,
    { devices: 1, total: slice, deviceTotal: slice, beyond: OUT_OF_MEMORY },
    outcome,
  );
  const [first, last] = [Number(saw['first']), Number(saw['last'])];
  if (!(last < first / 2)) problems.push(`the loss went from ${first} to ${last}`);
  tally.judge('training', problems);
}

/** Each way to escape is a separate check. */
async function judgeWays(scene: Scene, tally: Tally, { container }: StartedPod): Promise<void> {
  const driver = scene.proxy.log
    .map(({ driver: file }) => file)
    .find((file) => typeof file === 'string') as string;
  const own = values.backend === 'real' ? ([[driver, '/opt/own/libcuda.so.1']] as const) : [];
  const environment = {
    STATE: scene.node.state,
    ...(own.length > 0 && { OWN_DRIVER: '/opt/own/libcuda.so.1' }),
  };
  const outcome = await container.python('escape.py', environment, own);
  const ways = Object.entries(answerOf(outcome));
  console.log(`${ways.length} ways to the GPU were tried`);
  if (ways.length === 0) tally.judge('ways', [`none was tried: ${outcome.stderr}`]);
  for (const [way, led] of ways)
    tally.judge(`way ${way}`, led === null ? [] : [`led to ${JSON.stringify(led)}`]);
}

async function judgeRelease(
  scene: Scene,
  tally: Tally,
  pods: readonly StartedPod[],
): Promise<void> {
  for (const pod of pods) await scene.endPod(pod);
  const rest = await lookUntil(
    () => scene.allocations(),
    (now) => now.length === 0,
  );
  const left = rest.map(({ id, owner }) => `allocation ${id} of ${owner?.pod} is still there`);
  tally.judge('release', left);
}

async function sliceOf(scene: Scene): Promise<number> {
  const [gpu] = await scene.gpus();
  return SLOTS * (gpu?.slotMemoryBytes ?? 0);
}

function answerOf({ stdout }: Outcome): Record<string, unknown> {
  try {
    return JSON.parse(stdout) as Record<string, unknown>;
  } catch {
    return {};
  }
}

function differences(
  saw: Record<string, unknown>,
  wanted: object,
  { status, stderr }: Outcome,
): string[] {
  const wrong = Object.entries(wanted).filter(([name, value]) => saw[name] !== value);
  const problems = wrong.map(([name, value]) => `${name} is ${saw[name]}, and not ${value}`);
  return problems.length === 0 ? [] : [...problems, `it ended with ${status}: ${stderr}`];
}
