"""`python -m gamelore` is the command `gamelore`, also where the folder of scripts is not in the PATH."""

from .cli import main

if __name__ == "__main__":
    main()
