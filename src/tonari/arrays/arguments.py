"""Arguments that are not arrays: k, threads, memory, paths. None of them is guessed at."""

from __future__ import annotations

import operator
import os
import re
import reprlib
