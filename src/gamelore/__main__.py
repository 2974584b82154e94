"""The command `gamelore`, which is also `python -m gamelore`, where the folder of scripts is not in the PATH."""

import sys


def main() -> None:
    """Run the command line. Reading its modules takes a second, in which Ctrl-C may come, too."""
    try:
        from .cli import main as run
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
