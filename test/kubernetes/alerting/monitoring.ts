import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { buildKubernetesTools, kubernetesTool } from '@nvidia-virtual/toolchain/kubernetes-tools';
import { parse } from 'yaml';
import { INHIBITION_FILE, RULE_FILE } from '../../chart/alert-rules.js';
import type { ControlPlane } from '../control-plane.js';
import type { Daemon } from '../daemon.js';
import { freePorts, hostAddress } from '../ports.js';

/** One kind of process that Prometheus reads. */
export interface Job {
  readonly job_name: string;
  /** HOST:PORT. */
  readonly targets: readonly string[];
  readonly labels?: Readonly<Record<string, string>>;
  /** More of a scrape configuration, such as credentials. */
  readonly more?: object;
}

interface Alert {
  readonly labels: Readonly<Record<string, string>>;
  readonly status: { readonly state: string };
}

/** A real Prometheus and Alertmanager with the chart's rules, and the receiver of notifications. */
export class Monitoring {
  readonly #plane: ControlPlane;
  readonly #directory: string;
  readonly #notified = new Set<string>();
  readonly #receiver: Server;
  #prometheus!: Daemon;
  #ports: readonly [prometheus: number, alertmanager: number, cluster: number] = [0, 0, 0];

  private constructor(plane: ControlPlane) {
    this.#plane = plane;
    this.#directory = path.join(plane.directory, 'monitoring');
    mkdirSync(this.#directory);
    this.#receiver = createServer((request, response) => {
      void text(request).then((body) => {
        const { alerts } = JSON.parse(body) as { alerts: Alert[] };
        for (const { labels } of alerts) this.#notified.add(nameOf(labels));
        response.end();
      });
    });
  }

  static async start(plane: ControlPlane, jobs: readonly Job[]): Promise<Monitoring> {
    await buildKubernetesTools(['prometheus', 'alertmanager']);
    const monitoring = new Monitoring(plane);
    await monitoring.#start(jobs);
    return monitoring;
  }

  stop(): void {
    this.#receiver.close();
  }

  /** Alerts of which a notification was sent: `NAME` and the node, if it has one. */
  get notified(): string[] {
    return [...this.#notified].toSorted();
  }

  /** Alerts in Alertmanager that a rule silences. */
  async suppressed(): Promise<string[]> {
    const alerts = (await this.#get(this.#ports[1], '/api/v2/alerts')) as Alert[];
    return alerts
      .filter(({ status }) => status.state === 'suppressed')
      .map(({ labels }) => nameOf(labels))
      .toSorted();
  }

  /** HOST:PORT of Prometheus, reachable for the API server. */
  get address(): readonly [host: string, port: number] {
    return [hostAddress(), this.#ports[0]];
  }

  /** Labels and value of each series. */
  async query(expression: string): Promise<(readonly [Record<string, string>, number])[]> {
    const query = new URLSearchParams({ query: expression });
    const { data } = (await this.#get(this.#ports[0], `/api/v1/query?${query}`)) as {
      data: { result: { metric: Record<string, string>; value: [number, string] }[] };
    };
    return data.result.map(({ metric, value }) => [metric, Number(value[1])]);
  }

  async #get(port: number, at: string): Promise<unknown> {
    return (await fetch(`http://127.0.0.1:${port}${at}`)).json();
  }

  async #start(jobs: readonly Job[]): Promise<void> {
    await new Promise<void>((resolve) => this.#receiver.listen(0, '127.0.0.1', resolve));
    const [prometheus = 0, alertmanager = 0, cluster = 0] = await freePorts(3);
    this.#ports = [prometheus, alertmanager, cluster];
    const manager = this.#plane.startDaemon('alertmanager', {
      program: kubernetesTool('alertmanager'),
      args: [
        `--config.file=${this.#write('alertmanager.json', this.#alertmanagerConfiguration())}`,
        `--storage.path=${path.join(this.#directory, 'alertmanager')}`,
        `--web.listen-address=127.0.0.1:${alertmanager}`,
        '--cluster.listen-address=',
      ],
    });
    this.#prometheus = this.#plane.startDaemon('prometheus', {
      program: kubernetesTool('prometheus'),
      args: [
        `--config.file=${this.#write('prometheus.json', this.#prometheusConfiguration(jobs))}`,
        `--storage.tsdb.path=${path.join(this.#directory, 'prometheus')}`,
        ...['127.0.0.1', hostAddress()].map((host) => `--web.listen-address=${host}:${prometheus}`),
      ],
    });
    await manager.serving(() => isReady(alertmanager));
    await this.#prometheus.serving(() => isReady(prometheus));
  }

  #alertmanagerConfiguration(): object {
    const { port } = this.#receiver.address() as AddressInfo;
    return {
      route: {
        receiver: 'test',
        // The default of 30 s, in the same proportion as the rules.
        group_by: ['alertname'],
        group_wait: '500ms',
        group_interval: '1s',
        repeat_interval: '1h',
      },
      receivers: [
        {
          name: 'test',
          webhook_configs: [{ url: `http://127.0.0.1:${port}/`, send_resolved: false }],
        },
      ],
      ...parse(readFileSync(INHIBITION_FILE, 'utf8')),
    };
  }

  #prometheusConfiguration(jobs: readonly Job[]): object {
    // A minute lasts a second.
    const rules = readFileSync(RULE_FILE, 'utf8').replaceAll(
      /((?:for: |\[|offset )\d+)m\b/g,
      '$1s',
    );
    writeFileSync(path.join(this.#directory, 'rules.yaml'), rules);
    return {
      global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
      rule_files: ['rules.yaml'],
      alerting: {
        alertmanagers: [{ static_configs: [{ targets: [`127.0.0.1:${this.#ports[1]}`] }] }],
      },
      scrape_configs: jobs.map(({ job_name, targets, labels = {}, more }) => ({
        job_name,
        honor_labels: true,
        static_configs: [{ targets, labels }],
        ...more,
      })),
    };
  }

  #write(name: string, content: object): string {
    const file = path.join(this.#directory, name);
    writeFileSync(file, JSON.stringify(content));
    return file;
  }
}

function nameOf({ alertname, node }: Readonly<Record<string, string>>): string {
  return [alertname, node].filter(Boolean).join(' ');
}

async function isReady(port: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}/-/ready`).then(
    ({ ok }) => ok,
    () => false,
  );
}
