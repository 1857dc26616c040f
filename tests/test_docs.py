"""The documents say what the code and the committed results say."""

import importlib.util
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[1] / "tools" / "write_docs.py"


def test_the_documents_are_what_make_docs_writes(monkeypatch, capsys):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", ["write_docs.py", "--check"])
    spec = importlib.util.spec_from_file_location("write_docs", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.main() == 0, capsys.readouterr().err
