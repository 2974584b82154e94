"""The scripted player of examples/, for tests."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

PATH = Path(__file__).resolve().parents[1] / "examples" / "scripted_player.py"
_spec = importlib.util.spec_from_file_location("scripted_player", PATH)
assert _spec is not None
assert _spec.loader is not None
_module = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = _module  # dataclasses look their module up
_spec.loader.exec_module(_module)

ScriptedPlayer = _module.ScriptedPlayer
playing = _module.playing
read_script = _module.read_script
