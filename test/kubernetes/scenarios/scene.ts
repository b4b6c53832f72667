import type { Tally } from '../../tally.js';
import type { Cluster } from '../cluster/cluster.js';
import type { ContainerRuntime } from '../cluster/container-runtime.js';
import type { TestNode } from '../cluster/test-node.js';
import type { Tenants } from './tenants.js';

/** What a scenario plays with. */
export interface Scene {
  readonly cluster: Cluster;
  readonly tally: Tally;
  /** Pods of a namespace that only this scenario has. */
  readonly tenants: Tenants;
}

/** A scene on this machine, which the scenario may look into and reboot. */
export interface NodeScene extends Scene {
  readonly cluster: TestNode;
}

interface About {
  readonly name: string;
  readonly about: string;
  /** It installs the product itself, where there is none. */
  readonly installs?: true;
}

/** Plays on any cluster. */
export interface Scenario extends About {
  readonly anywhere: true;
  play(scene: Scene): Promise<void>;
}

/** Plays only where this machine is the node. */
export interface NodeScenario extends About {
  readonly anywhere?: false;
  /** The only one that can do what it needs. */
  readonly runtime?: ContainerRuntime;
  play(scene: NodeScene): Promise<void>;
}
