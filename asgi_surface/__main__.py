"""`python -m asgi_surface`: the command line where its script is not on the path."""

from __future__ import annotations

import sys

from asgi_surface.cli import main

sys.exit(main())
