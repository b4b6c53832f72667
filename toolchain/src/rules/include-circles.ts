import path from 'node:path';
import type { Rule } from './rule.js';
import { type TrackedFile, trackedFiles } from './tracked-files.js';

const CODE = /^(interposer|native|wire)\/(?!(.*\/)?test\/).*\.(h|cpp)$/;
const INCLUDE = /^#include "([^"]+)"/gm;

/** A unit is NAME.h with NAME.cpp. */
export const includeCircles: Rule = {
  law: 'C++ units (x.h with x.cpp) have no include cycles outside of tests',
  check: async () =>
    findIncludeCircles((await trackedFiles()).filter((file) => CODE.test(file.path))),
};

export function findIncludeCircles(files: readonly TrackedFile[]): string[] {
  const included = new Map<string, Set<string>>();
  for (const file of files) {
    const unit = unitOf(file.path);
    const units = included.get(unit) ?? new Set();
    for (const [, name = ''] of file.text().matchAll(INCLUDE)) units.add(unitOf(name));
    units.delete(unit);
    included.set(unit, units);
  }
  const problems: string[] = [];
  const finished = new Set<string>();
  const visit = (unit: string, chain: readonly string[]): void => {
    if (chain.includes(unit)) {
      const circle = [...chain.slice(chain.indexOf(unit)), unit];
      problems.push(`${circle.join(' includes ')}: move the shared code into a separate unit.`);
    }
    if (chain.includes(unit) || finished.has(unit)) return;
    for (const next of included.get(unit) ?? []) visit(next, [...chain, unit]);
    finished.add(unit);
  };
  for (const unit of included.keys()) visit(unit, []);
  return problems;
}

function unitOf(file: string): string {
  return file.slice(0, file.length - path.extname(file).length);
}
