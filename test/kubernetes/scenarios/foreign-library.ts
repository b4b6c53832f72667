import { tenantContainer, tenantPod } from './pods.js';
import type { Scenario } from './scene.js';

/** Directory of a libcuda.so.1 in the image of the programs. */
const COMPAT = '/opt/compat';
const TENANT = '/opt/programs/tenant';

/** Problem of other systems: images with cuda-compat load NVIDIA's library. */
export const foreignLibrary: Scenario = {
  name: 'foreign-library',
  beside: true,
  anywhere: true,
  about: 'a pod whose image has another libcuda.so.1 loads ours; one that insists gets an event',
  async play({ tally, tenants }) {
    const looks = ['env', `LD_LIBRARY_PATH=${COMPAT}`, TENANT, 'look'];
    const insists = ['env', `LD_PRELOAD=${COMPAT}/libcuda.so.1`, 'sleep', '600'];
    const idles = ['sleep', '600'];
    // Their first processes ignore SIGTERM.
    const quick = { terminationGracePeriodSeconds: 1 };
    await tenants.apply(
      tenantPod('idles', {
        spec: { ...quick, containers: [tenantContainer('main', 1, '', idles)] },
      }),
      tenantPod('looks', { spec: { containers: [tenantContainer('main', 1, '', looks)] } }),
      tenantPod('insists', {
        spec: { ...quick, containers: [tenantContainer('main', 1, '', insists)] },
      }),
    );
    const printed = await tenants.result('looks');
    tally.judge(
      'with cuda-compat in LD_LIBRARY_PATH, a pod sees its slice',
      printed.startsWith('devices 1\n') ? [] : [`it printed ${printed}`],
    );
    await tenants.event('insists', /has loaded \/opt\/compat\/libcuda\.so\.1, which finds no GPU/);
    // The scheduler and the kubelet may complain of what comes a little later.
    const complaints = (await tenants.events('idles')).filter(
      ({ type, source }) => type !== 'Normal' && source?.component === 'nvidia-virtual',
    );
    tally.judge(
      'and a pod that uses no GPU gets none',
      complaints.map(({ message }) => `it was told ${message}`),
    );
    tally.judge('a pod that loads another libcuda.so.1 all the same gets an event', []);
  },
};
