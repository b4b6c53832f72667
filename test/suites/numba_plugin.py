"""What numba-cuda's tests expect of a file that its package lacks"""

import pytest


@pytest.fixture
def initialize_from_pytest_config(request):
    request.cls._dump_failed_filechecks = False
