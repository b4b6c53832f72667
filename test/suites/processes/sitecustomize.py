"""Processes that tests start read the .pth files of the suite's packages, as run.py does."""

import os
import site

site.addsitedir(os.environ['SUITE_PACKAGES'])
