"""`python -m vmstore.shell.vmql`."""

import sys

from vmstore.shell.vmql.main import main

sys.exit(main())
