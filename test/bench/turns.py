"""Runs a framework program in several processes at once that do its timed work in turns.

What disturbs the machine then disturbs all of them alike. On some machines, the times of processes
one after the other differ by a third.
"""

import os
import signal
import subprocess
import tempfile
import threading
from contextlib import ExitStack

from h200 import json_lines


def run_in_turns(commands, turns, seconds, cwd):
    """What each command printed, or {'error': ...}. All end after `seconds`."""
    with ExitStack() as stack:
        racers = [stack.enter_context(Racer(command, turns, cwd)) for command in commands]
        stop = threading.Timer(seconds, lambda: [racer.kill() for racer in racers])
        stop.start()
        stack.callback(stop.cancel)
        if all([racer.is_ready() for racer in racers]):
            for _ in range(turns):
                for racer in racers:
                    racer.take_turn()
        return [racer.result() for racer in racers]


class Racer:
    """A process that says when it is ready for its turn, and waits (helpers/report.py)."""

    def __init__(self, command, turns, cwd):
        self.errors = tempfile.TemporaryFile('w+')
        self.printed = []
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env=os.environ | {'FRAMEWORK_TURNS': str(turns)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            start_new_session=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self.process.wait()
        self.errors.close()

    def kill(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)

    def is_ready(self):
        """Reads what it prints until it is ready, or ends."""
        for line in self.process.stdout:
            if line == 'ready\n':
                return True
            self.printed.append(line)
        return False

    def take_turn(self):
        try:
            self.process.stdin.write('\n')
            self.process.stdin.flush()
        except BrokenPipeError:
            return  # result() says why it ended
        self.is_ready()

    def result(self):
        """Lets it finish its report, or fail if it still waits for a turn."""
        rest, _ = self.process.communicate('\n')
        lines = json_lines(''.join(self.printed) + rest)
        if self.process.returncode == 0 and lines:
            return lines[-1]
        self.errors.seek(0)
        return {'error': f'exit status {self.process.returncode}\n{self.errors.read()[-2000:]}'}
