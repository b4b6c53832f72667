import { parseCgroup } from './cgroup.js';

const UID = '0b6f6c5e-1111-4222-8333-944444444444';
const ESCAPED = UID.replaceAll('-', '_');
const ID = 'c0ffee'.padEnd(64, '0');
const SLICE = `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod${ESCAPED}.slice`;

test.each([
  [
    'cgroupfs, version 1',
    `12:pids:/kubepods/besteffort/pod${UID}/` +
      `${ID}\n1:name=systemd:/kubepods/besteffort/pod${UID}/${ID}\n`,
  ],
  ['cgroupfs, guaranteed', `4:memory:/kubepods/pod${UID}/${ID}\n`],
  ['cgroupfs, version 2', `0::/kubepods/burstable/pod${UID}/${ID}\n`],
  ['systemd and containerd', `0::${SLICE}/cri-containerd-${ID}.scope\n`],
  ['systemd and containerd, version 1', `3:cpu,cpuacct:${SLICE}/cri-containerd-${ID}.scope\n`],
  ['systemd and cri-o', `0::${SLICE}/crio-${ID}.scope\n`],
  [
    'cri-o with cgroups of the container beneath',
    `0::${SLICE}/crio-${ID}.scope/container/init.scope\n`,
  ],
  ['systemd and docker', `0::${SLICE}/docker-${ID}.scope\n`],
  [
    'containerd without systemd beneath a kubelet with it',
    `5:pids:/system.slice/kubepods-pod${ESCAPED}.slice:cri-containerd:${ID}\n`,
  ],
  [
    'a cgroup root of its own',
    `0::/custom.slice/custom-kubepods.slice/custom-kubepods-pod` +
      `${ESCAPED}.slice/cri-containerd-${ID}.scope\n`,
  ],
  [
    'a node that is a container (kind)',
    `0::/docker/${'1'.repeat(64)}/kubelet.slice/kubelet-kubepods-pod` +
      `${ESCAPED}.slice/cri-containerd-${ID}.scope\n`,
  ],
  [
    'seen from a private cgroup namespace',
    `0::/../../kubepods-burstable-pod${ESCAPED}.slice/cri-containerd-${ID}.scope\n`,
  ],
  [
    'some hierarchies only',
    `9:name=systemd:/\n4:memory:/\n2:pids:/kubepods/pod${UID}/${ID}\n0::/\n`,
  ],
])('number 16: pod and container of a process under %s', (_, text) => {
  expect(parseCgroup(text)).toEqual({ podUid: UID, containerId: ID });
});

test('number 16: a static pod has a UID without dashes; a process may be in no container', () => {
  const hash = UID.replaceAll('-', '');
  expect(parseCgroup(`0::/kubepods/burstable/pod${hash}/${ID}\n`)).toEqual({
    podUid: hash,
    containerId: ID,
  });
  expect(parseCgroup(`0::${SLICE}/nvidia-virtual\n`)).toEqual({
    podUid: UID,
    containerId: undefined,
  });
});

const OTHER = 'c0ffee00-1111-4222-8333-944444444444';
const OTHER_ID = 'f00d'.padEnd(64, '0');
const OTHER_SLICE = `kubepods-pod${OTHER.replaceAll('-', '_')}.slice`;

test.each([
  ['cgroupfs, version 1', `4:memory:/kubepods/pod${UID}/${ID}/kubepods/pod${OTHER}/${OTHER_ID}\n`],
  ['cgroupfs, version 2', `0::/kubepods/burstable/pod${UID}/${ID}/pod${OTHER}/${OTHER_ID}\n`],
  [
    'systemd, version 1',
    `4:memory:${SLICE}/cri-containerd-${ID}.scope/` +
      `${OTHER_SLICE}/cri-containerd-${OTHER_ID}.scope\n`,
  ],
  [
    'systemd, version 2',
    `0::${SLICE}/crio-${ID}.scope/kubepods.slice/${OTHER_SLICE}/crio-${OTHER_ID}.scope\n`,
  ],
  ['a container within its own pod', `0::/kubepods/pod${UID}/${ID}/${OTHER_ID}\n`],
  ['seen from a private cgroup namespace', `0::/../../pod${UID}/${ID}/pod${OTHER}/${OTHER_ID}\n`],
  [
    'one hierarchy of several',
    `4:memory:/\n2:pids:/kubepods/pod${UID}/` +
      `${ID}\n1:cpuset:/kubepods/pod${UID}/${ID}/pod${OTHER}/${OTHER_ID}\n`,
  ],
])(
  'number 16: a cgroup that a container created does not place a process in another pod: %s',
  (_, text) => {
    for (const init of ['', '4:memory:/\n0::/init.scope\n', '0::/../../../init.scope\n'])
      expect(parseCgroup(text, init)).toEqual({ podUid: UID, containerId: ID });
  },
);

test.each([
  [
    'cgroupfs, version 1',
    '4:memory',
    `/kubepods/pod${OTHER}/${OTHER_ID}`,
    `/kubepods/besteffort/pod${UID}/${ID}`,
  ],
  ['cgroupfs, version 2', '0:', `/kubepods/pod${OTHER}/${OTHER_ID}`, `/pod${UID}/${ID}`],
  [
    'systemd',
    '0:',
    `/kubepods.slice/${OTHER_SLICE}/cri-containerd-${OTHER_ID}.scope`,
    `${SLICE}/cri-containerd-${ID}.scope`,
  ],
])(
  'number 16: a node that is itself a container of another cluster has its own pods: %s',
  (_, hierarchy, node, pod) => {
    for (const init of ['', '/init', '/init.scope'])
      expect(parseCgroup(`${hierarchy}:${node}${pod}\n`, `${hierarchy}:${node}${init}\n`)).toEqual({
        podUid: UID,
        containerId: ID,
      });
    // Processes of the node are in none of its pods.
    expect(parseCgroup(`${hierarchy}:${node}/kubelet\n`, `${hierarchy}:${node}\n`)).toBeUndefined();
    expect(parseCgroup(`${hierarchy}:${node}\n`, `${hierarchy}:${node}\n`)).toBeUndefined();
  },
);

test.each([
  '0::/\n',
  '0::/user.slice/session-1.scope\n',
  `0::/docker/${ID}\n`,
  `0::/kubepods/podcast/${ID}\n`,
  `0::/podx${UID}\n`,
  '',
])('number 16: %j is not in a pod', (text) => {
  expect(parseCgroup(text)).toBeUndefined();
});
