"""Runs pytest, and writes what becomes of each test as a line of JSON.

  run.py PACKAGES REPORT ARGUMENT...

PACKAGES is a directory made by `pip install --target`. A line of REPORT has `test`, `outcome`
(started, passed, failed or skipped) and `why`. A crash leaves the test that caused it as started.
"""

import json
import site
import sys

packages, report, *arguments = sys.argv[1:]
sys.path.insert(0, packages)
site.addsitedir(packages)

import numba_plugin  # noqa: E402, because pytest is one of the packages
import pytest  # noqa: E402


def shortened(text):
    return text if len(text) < 4000 else text[:2000] + ' ... ' + text[-2000:]


def reason(report):
    if report.outcome != 'failed':
        return ''
    crash = getattr(report.longrepr, 'reprcrash', None)
    return shortened(crash.message) if crash else shortened(str(report.longrepr))


class Report:
    def __init__(self, file):
        self.file = file

    def write(self, test, outcome, why=''):
        self.file.write(json.dumps({'test': test, 'outcome': outcome, 'why': why}) + '\n')
        self.file.flush()

    def pytest_runtest_logstart(self, nodeid, location):
        self.write(nodeid, 'started')

    def pytest_runtest_logreport(self, report):
        if report.when == 'call' or report.outcome != 'passed':
            self.write(report.nodeid, report.outcome, reason(report))


# Processes that tests spawn import this file, too, for the paths above.
if __name__ == '__main__':
    with open(report, 'a') as file:
        status = pytest.main(arguments, plugins=[Report(file), numba_plugin])
    sys.exit(status)
