"""Prints one table of all figures with a limit, from the results of test/h200.sh in a directory.
Ends with status 1 if one does not hold."""

import json
import sys
from pathlib import Path

LISTS = {'bench': 'figures', 'frameworks': 'frameworks', 'sharing': 'scenarios'}


def with_spread(one, kind=''):
    ratio, spread = one.get(f'{kind}ratio'), one.get(f'{kind}spread')
    if ratio is None:
        return '-'
    return f'{ratio:.3f}' + (f' ({spread[0]:.3f} to {spread[1]:.3f})' if spread else '')


def of_tenants(one):
    """The total of a scenario, and the greatest p99 of a piece of work."""
    if one.get('shared') is None:
        return f'{one["warm"] / one["native"]:.3f}' if one.get('native') else '-'
    greatest = max((tenant['shared'].get('p99', 0) for tenant in one['tenants']), default=0)
    return f'{one["shared"]:.3f}' + (f', p99 {greatest / 1000:.2f} ms' if greatest else '')


def judged(one):
    """Name, measured value, limit and whether it holds, of each limit of a figure."""
    name = one['name']
    if 'limit' in one:
        measured = of_tenants(one) if 'tenants' in one else with_spread(one)
        yield name, measured, one['limit'], one['holds']
    if 'processor_limit' in one:
        measured = with_spread(one, 'processor_')
        yield f'{name}, processor time', measured, one['processor_limit'], one['processor_holds']
    if not one.get('equal', True):
        yield f'{name}, results', 'different', 'equal', False


def main():
    directory = Path(sys.argv[1])
    rows = []
    for name, list_of in LISTS.items():
        file = directory / f'{name}.json'
        if file.exists():
            figures = json.loads(file.read_text())[list_of]
            rows += [row for one in figures for row in judged(one)]
        else:
            rows.append((name, 'not measured', '-', False))
    for name, measured, limit, holds in rows:
        print(f'{name:50} {measured:26} {limit:40} {"holds" if holds else "DOES NOT HOLD"}')
    sys.exit(0 if all(holds for *_, holds in rows) else 1)


if __name__ == '__main__':
    main()
