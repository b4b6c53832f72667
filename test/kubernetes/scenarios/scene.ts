import type { Tally } from '../../tally.js';
import type { Cluster } from '../cluster/cluster.js';
import type { ContainerRuntime } from '../cluster/container-runtime.js';
import type { TestNode } from '../cluster/test-node.js';
import type { Values } from './product.js';
import type { Tenants } from './tenants.js';

/** Objects that a scenario uses. */
export interface Scene {
  readonly cluster: Cluster;
  readonly tally: Tally;
  /** Pods of a namespace that only this scenario has. */
  readonly tenants: Tenants;
}

/** A scene on this machine, which the scenario may inspect and reboot. */
export interface NodeScene extends Scene {
  readonly cluster: TestNode;
}

interface About {
  readonly name: string;
  readonly about: string;
  /** It installs the product itself if it is missing. */
  readonly installs?: true;
  /** Values of the chart that it needs. Default: those of every test. */
  readonly values?: Values;
  /** Slots that the node offers with them. Default: SLOTS. */
  readonly slots?: number;
  /** It notices nothing of others that say the same, and runs beside one of them. */
  readonly beside?: true;
  /** It takes too long to run without being named. */
  readonly onlyByName?: true;
}

/** Runs on any cluster. */
export interface Scenario extends About {
  readonly anywhere: true;
  play(scene: Scene): Promise<void>;
}

/** Runs only if this machine is the node. */
export interface NodeScenario extends About {
  readonly anywhere?: false;
  /** The only runtime that supports the scenario. Undefined: every runtime. */
  readonly runtime?: ContainerRuntime;
  /** Begins in the background, while scenarios before it wait. play() awaits it. */
  prepare?(cluster: TestNode): Promise<unknown>;
  play(scene: NodeScene): Promise<void>;
}
