import type { V1Pod } from '@kubernetes/client-node';
import type { ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { Reflector } from '@nvidia-virtual/kube-common/reflector';
import { schedulerConfiguration } from '@nvidia-virtual/scheduler-ext/testing/scheduler-configuration';
import { pino } from 'pino';
import type { ControlPlane } from '../../kubernetes/control-plane.js';
import { pod } from '../../kubernetes/scheduler/objects.js';
import { until } from '../../processes.js';
import { createPods, deletePods, PODS } from './load.js';

const BURST = { burst: 'true' };
const SELECTED = { labelSelector: 'burst=true' };
const PATIENCE_MS = 600_000;

interface BindRateOptions {
  readonly plane: ControlPlane;
  readonly api: ApiServer;
  /** Of the extender. Undefined: kube-scheduler places the pods alone, with the same settings. */
  readonly port: number | undefined;
  readonly pods: number;
}

/**
 * Pods that kube-scheduler binds a second. They are pending when it starts. Its start does not
 * count: the clock runs from the first binding to the last. The pods are deleted afterwards.
 */
export async function measureBindRate({
  plane,
  api,
  port,
  pods,
}: BindRateOptions): Promise<number> {
  const bindings = new Bindings(api);
  await createPods(
    api,
    Array.from({ length: pods }, (_, index) =>
      pod(`burst-${index}`, { slots: 1 + (index % 3), labels: BURST }),
    ),
  );
  void bindings.run();
  const { extenders, ...alone } = schedulerConfiguration(`http://127.0.0.1:${port}`, 'binpack');
  const scheduler = await plane.startScheduler(
    'kube-scheduler',
    port === undefined ? alone : { ...alone, extenders },
  );
  try {
    if (!(await until(() => bindings.times.size === pods, PATIENCE_MS)))
      throw new Error(`only ${bindings.times.size} of ${pods} pods were bound`);
  } finally {
    bindings.stop();
    await scheduler.stop();
  }
  await deletePods(api, SELECTED);
  return bindings.rate;
}

/** Sees each binding as a watch shows it: a list of all pods would slow down what is measured. */
class Bindings {
  /** Of performance.now(), by name of the pod, in the order of the bindings. */
  readonly times = new Map<string, number>();
  readonly #reflector: Reflector<V1Pod, V1Pod>;

  constructor(api: ApiServer) {
    const put = ({ metadata, spec }: V1Pod) => {
      const name = metadata?.name ?? '';
      if (spec?.nodeName !== undefined && !this.times.has(name))
        this.times.set(name, performance.now());
    };
    this.#reflector = new Reflector<V1Pod, V1Pod>({
      api,
      path: PODS,
      query: SELECTED,
      read: (one) => one,
      reflection: { replace: (all) => all.forEach(put), put, remove: () => {} },
      logger: pino({ level: 'silent' }),
    });
  }

  run(): Promise<void> {
    return this.#reflector.run();
  }

  stop(): void {
    this.#reflector.stop();
  }

  /** Bindings a second. */
  get rate(): number {
    const times = [...this.times.values()];
    const seconds = ((times.at(-1) as number) - (times[0] as number)) / 1000;
    return (times.length - 1) / seconds;
  }
}
