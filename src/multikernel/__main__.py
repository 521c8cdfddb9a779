"""The command ``multikernel`` as ``python -m multikernel``."""

from multikernel.cli import main

if __name__ == "__main__":
    main()
