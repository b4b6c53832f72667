import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { runCommand } from '@nvidia-virtual/toolchain/command';
import { kubernetesTool } from '@nvidia-virtual/toolchain/kubernetes-tools';
import { ControlPlane } from './control-plane.js';

describe('ControlPlane', () => {
  let plane: ControlPlane;
  beforeAll(async () => {
    plane = await ControlPlane.start();
  });
  afterAll(() => plane?.stop());

  const kubectl = (kubeconfig: string, ...args: string[]) =>
    runCommand(kubernetesTool('kubectl'), ['--kubeconfig', kubeconfig, ...args]);

  test('its administrator may do everything', async () => {
    const { output } = await kubectl(plane.adminKubeconfig, 'auth', 'can-i', '*', '*');
    expect(output).toBe('yes\n');
  });

  test('a kubeconfig of another user has that user, without rights', async () => {
    const user = plane.kubeconfig('team:alice', ['tenants', 'a/b']);
    expect(
      (
        await kubectl(
          user,
          'auth',
          'whoami',
          '-o',
          'jsonpath={.status.userInfo.username} {.status.userInfo.groups}',
        )
      ).output,
    ).toBe('team:alice ["tenants","a/b","system:authenticated"]\n');
    expect((await kubectl(user, 'get', 'pods')).output).toContain(
      'pods is forbidden: User "team:alice" cannot list',
    );
  });

  test('a pod can be created without controllers', async () => {
    const { output } = await kubectl(plane.adminKubeconfig, 'run', 'one', '--image', 'any');
    expect(output).toBe('pod/one created\n');
  });

  test('a killed API server keeps its data after a restart', async () => {
    await plane.daemon('kube-apiserver').kill();
    plane.daemon('kube-apiserver').start();
    await plane.ready();
    expect((await kubectl(plane.adminKubeconfig, 'get', 'pod', 'one', '-o', 'name')).output).toBe(
      'pod/one\n',
    );
  });
});
