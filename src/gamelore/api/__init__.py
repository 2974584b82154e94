"""The functions and results that `import gamelore` offers, and that the commands call. docs/api.md lists them."""
