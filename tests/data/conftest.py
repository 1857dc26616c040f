"""A root folder of one's own, and a web server that can misbehave."""

import http.server
import threading

import pytest

from pu_shift.data import loading, registry, sources
from tests.data import tiny


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Root of a made-up source tree that knows only the tiny dataset."""
    monkeypatch.setattr(loading, "CHECKOUT", tmp_path / "main")
    monkeypatch.setattr(registry, "_SPECS", (tiny.spec(),))
    for name in ("PU_SHIFT_DATA", "PU_SHIFT_CACHE", "PU_SHIFT_FETCH", "PU_SHIFT_MIRROR"):
        monkeypatch.delenv(name, raising=False)
    loading.raw_folder().mkdir(parents=True)
    return tmp_path / "main"


class _Handler(http.server.BaseHTTPRequestHandler):
    """Answers by the first part of the path: /serve, /cut, /stall, /redirect, /404 ..."""

    def do_GET(self):
        # First, so that whoever has an answer finds its request recorded.
        self.server.requests.append(self.path)
        _, action, _ = self.path.split("/", 2)
        body = self.server.pages.get(self.path, self.server.body)
        if action == "redirect":
            self.send_response(302)
            self.send_header("Location", self.server.target)
            self.end_headers()
        elif action.isdigit():
            self.send_error(int(action))
        else:
            self.send_response(200)
            if action != "unsized":
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            whole = action in ("serve", "unsized") or self.path in self.server.pages
            self.wfile.write(body if whole else body[: len(body) // 2])
            self.wfile.flush()
            if action == "stall":
                self.server.release.wait(20)

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    """A real server on this machine; set ``body`` and ``target`` as needed."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sources, "TIMEOUT", 0.5)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        server.body, server.target, server.requests = tiny.libsvm(), "", []
        server.pages = {}
        server.release = threading.Event()
        server.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.release.set()
        server.shutdown()
        thread.join()
