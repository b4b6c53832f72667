import type { Tally } from '../../tally.js';
import type { Cluster } from '../cluster/cluster.js';
import type { ContainerRuntime } from '../cluster/container-runtime.js';
import type { Tenants } from './tenants.js';

/** What a scenario plays with. */
export interface Scene {
  readonly cluster: Cluster;
  readonly tally: Tally;
  /** Pods of a namespace that only this scenario has. */
  readonly tenants: Tenants;
}

export interface Scenario {
  readonly name: string;
  readonly about: string;
  /** The only one that can do what it needs. */
  readonly runtime?: ContainerRuntime;
  /** It installs the product itself, where there is none. */
  readonly installs?: true;
  play(scene: Scene): Promise<void>;
}
