import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parse } from 'yaml';
import { CHART } from './chart.js';

interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

export const RULE_FILE = path.join(CHART, 'files', 'alerts.yaml');
export const INHIBITION_FILE = path.join(CHART, 'files', 'alertmanager.yaml');

/** The alerts of the chart. */
export function readAlertRules(): AlertRule[] {
  const { groups } = parse(readFileSync(RULE_FILE, 'utf8')) as { groups: { rules: AlertRule[] }[] };
  return groups.flatMap(({ rules }) => rules);
}
