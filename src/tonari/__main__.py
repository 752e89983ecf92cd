"""``python -m tonari`` is the command line."""

from tonari.cli import main

if __name__ == "__main__":
    main()
