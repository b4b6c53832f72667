#!/usr/bin/env python3
"""Runs framework programs on a machine with a GPU, natively and through the product.

Each program in frameworks/ prints digests of its results. It runs natively, through the product
and natively again. All that repeats natively must be the same through the product. Needs python3
with the frameworks, node and the built tree.

  frameworks.py --json FILE [--only NAME,...] [--backend simulated]

A line `# run: WORD...` in a program says:
  timed       its times are compared, as the median of all ratios; nothing runs beside it
  alone       nothing runs beside it
  runs=N      so many runs through the product, each between two native ones
  turns=N     instead, one run through the product and two native ones at once, which do the timed
              work N times in turns
  memory=SIZE the quota
  gpus=N      it is left out if the machine has fewer GPUs
"""

import argparse
import concurrent.futures
import json
import re
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from h200 import HERE, json_lines, machine, remoted_command, run
from turns import run_in_turns

PROGRAMS = HERE / 'frameworks'
MEMORY = '24GiB'
JOBS = 5
MOST_RESULTS = 50  # of a program, in the JSON; of more, only their number
# Maximum of remoted / native, for times and for processor time.
LIMITS = {
    'resnet50_train': 1.0,
    'resnet50_compile': 1.01,
    'gpt2_generate': 0.85,
    'torch_first_kernel': 1.0,
}
PROCESSOR_LIMITS = {'resnet50_train': 1.3}


@dataclass(frozen=True)
class Program:
    name: str
    subject: str
    words: dict

    @property
    def alone(self):
        return 'alone' in self.words or self.timed

    @property
    def timed(self):
        return 'timed' in self.words

    @property
    def command(self):
        return [sys.executable, f'{self.name}.py']

    @property
    def turns(self):
        return int(self.words.get('turns', 0))


def programs():
    return [read_program(path) for path in sorted(PROGRAMS.glob('*.py'))]


def read_program(path):
    text = path.read_text()
    [subject] = re.findall(r'\A"""(.*?)"""', text, re.DOTALL)
    line = re.search(r'^# run: (.*)$', text, re.MULTILINE)
    words = [word.partition('=') for word in line[1].split()] if line else []
    return Program(path.stem, subject, {key: value for key, _, value in words})


class Runner:
    def __init__(self, backend, seconds):
        self.backend = backend
        self.seconds = seconds

    def once(self, program, remoted):
        """What one run printed, or {'error': ...}."""
        start = time.monotonic()
        output, error = run(
            program.command, remoted, self.seconds, cwd=PROGRAMS, options=self.options(program)
        )
        lines = json_lines(output)
        if error or not lines:
            return {'error': error or 'it printed no result'}
        return {**lines[-1], 'whole': time.monotonic() - start}

    def options(self, program):
        return ['--backend', self.backend, '--memory', program.words.get('memory', MEMORY)]

    def one_after_the_other(self, program):
        native, remoted = [self.once(program, False)], []
        for _ in range(int(program.words.get('runs', 1))):
            remoted.append(self.once(program, True))
            native.append(self.once(program, False))
        return native, remoted

    def in_turns(self, program):
        remoted = remoted_command(program.command, self.options(program))
        commands = [program.command, remoted, program.command]
        before, between, after = run_in_turns(
            commands, program.turns, 3 * self.seconds, PROGRAMS
        )
        return [before, after], [between]

    def compare(self, program):
        runs = self.in_turns if program.turns else self.one_after_the_other
        native, remoted = runs(program)
        outcome = {'name': program.name, 'subject': program.subject, 'timed': program.timed}
        outcome |= judge(native, remoted)
        if program.timed and 'error' not in outcome['native'] | outcome['remoted']:
            outcome |= ratios(program, native, remoted)
        print(f"{program.name}: {outcome['verdict']}", file=sys.stderr, flush=True)
        for where in ('native', 'remoted'):
            if 'error' in outcome[where]:
                print(f"{where}: {outcome[where]['error'][-1500:]}", file=sys.stderr, flush=True)
        return outcome


def judge(native, remoted):
    """Both sides' results and whether they are equal."""
    sides = {'native': merged(native), 'remoted': merged(remoted)}
    for where, side in sides.items():
        if 'error' in side:
            return {**sides, 'equal': False, 'verdict': f'FAILED ({where})'}
    expected = native[0]['results']
    varying = [key for key, value in expected.items() if native[-1]['results'].get(key) != value]
    different = sorted(
        key
        for one in remoted
        for key in expected.keys() | one['results'].keys()
        if key not in varying and one['results'].get(key) != expected.get(key)
    )
    verdict = 'equal' if not different else f"DIFFERENT: {', '.join(dict.fromkeys(different))}"
    if varying:
        verdict += f" (natively not repeatable: {', '.join(varying)})"
    return {**sides, 'equal': not different, 'varying': varying, 'verdict': verdict}


def merged(runs):
    """The first run's results with the median time of all runs, or the first error."""
    for one in runs:
        if 'error' in one:
            return one
    results = runs[0]['results']
    result = {
        'results': results if len(results) <= MOST_RESULTS else {'results': len(results)},
        'versions': runs[0]['versions'],
    }
    times = [seconds for one in runs for seconds in one.get('times', [])]
    if times:
        result |= {
            'seconds': statistics.median(times), 'fastest': min(times), 'slowest': max(times)
        }
    processor = [one['processor'] for one in runs if 'processor' in one]
    if processor:
        result['processor'] = statistics.median(processor)
    return result


def ratios(program, native, remoted):
    seconds = 'times' if program.turns else 'seconds'
    result = judged('', ratios_of(native, remoted, seconds), LIMITS.get(program.name))
    if native[0].get('processor'):
        of_runs = ratios_of(native, remoted, 'processor')
        result |= judged('processor_', of_runs, PROCESSOR_LIMITS.get(program.name))
    return result


def ratios_of(native, remoted, figure):
    """Ratios of each run or turn through the product to the mean of the native ones around it."""
    return [
        value / statistics.mean((earlier, later))
        for before, one, after in zip(native, remoted, native[1:], strict=False)
        for earlier, value, later in zip(
            *(values(run, figure) for run in (before, one, after)), strict=True
        )
    ]


def values(run, figure):
    return run[figure] if isinstance(run[figure], list) else [run[figure]]


def judged(prefix, of_runs, limit):
    ratio = statistics.median(of_runs)
    figure = {f'{prefix}ratio': ratio}
    if len(of_runs) > 1:
        figure[f'{prefix}spread'] = [min(of_runs), max(of_runs)]
    if limit is not None:
        figure |= {f'{prefix}limit': f'<= {limit}', f'{prefix}holds': ratio <= limit}
    return figure


def print_table(outcomes):
    print(f"{'program':26} {'native':>10} {'remoted':>10} {'ratio':>7} {'limit':8} results")
    for one in outcomes:
        print_row(one['name'], 'seconds', '', one, one['verdict'])
        if 'processor_ratio' in one:
            print_row('  its processor time', 'processor', 'processor_', one)


def print_row(title, figure, prefix, outcome, verdict=''):
    figures = [outcome[where].get(figure) for where in ('native', 'remoted')]
    figures.append(outcome.get(f'{prefix}ratio'))
    cells = ['' if value is None else f'{value:.4g}' for value in figures]
    limit = outcome.get(f'{prefix}limit', '')
    missed = '' if outcome.get(f'{prefix}holds', True) else 'limit missed '
    line = f'{title:26} {cells[0]:>10} {cells[1]:>10} {cells[2]:>7} {limit:8} {missed}{verdict}'
    print(line.rstrip())


def compare_all(runner, chosen, jobs):
    """Outcomes: first of the programs that may run beside each other, last of the timed ones."""
    beside = [program for program in chosen if not program.alone]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(runner.compare, program) for program in beside]
        for future in concurrent.futures.as_completed(futures):
            yield future.result()
    alone = [program for program in chosen if program.alone]
    for program in sorted(alone, key=lambda program: program.timed):
        yield runner.compare(program)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--json', type=Path, required=True)
    parser.add_argument('--only', help='these programs only, separated by commas')
    parser.add_argument('--backend', default='real', help='simulated: only to try a program')
    parser.add_argument('--seconds', type=int, default=100, help='for one run of a program')
    parser.add_argument('--jobs', type=int, default=JOBS, help='programs at a time')
    arguments = parser.parse_args()
    gpus = len(list(Path('/dev').glob('nvidia[0-9]*')))
    chosen = [program for program in programs() if int(program.words.get('gpus', 1)) <= gpus]
    if arguments.only:
        names = arguments.only.split(',')
        chosen = [program for program in chosen if program.name in names]
    runner = Runner(arguments.backend, arguments.seconds)
    outcomes = []
    report = {'machine': machine(), 'frameworks': outcomes}
    for outcome in compare_all(runner, chosen, arguments.jobs):
        outcomes.append(outcome | {'date': report['machine']['date']})
        # After each program, so that nothing is lost if the run is killed.
        arguments.json.write_text(json.dumps(report, indent=1) + '\n')
    print_table(outcomes)
    sys.exit(0 if all(one['equal'] for one in outcomes) else 1)


if __name__ == '__main__':
    main()
