"""A server on this machine that speaks as much of the Hub's API as is used here; it keeps all in memory."""

import base64
import contextlib
import hashlib
import json
import threading
import urllib.parse
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOKEN = "hf_a1b2c3d4e5f6g7h8i9j0"
"""The one that may write, and read what is private."""


def git_sha1(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@dataclass
class Repository:
    """Commits, each all its files by name, and branches that point to them."""

    private: bool = False
    gated: bool = False
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)

    def commit(self, files, branch="main"):
        """Add a commit with all of these files; give its hash."""
        content = json.dumps([[name, hashlib.sha256(data).hexdigest()] for name, data in sorted(files.items())])
        sha = hashlib.sha1(f"{len(self.commits)} {content}".encode()).hexdigest()
        self.commits[sha] = dict(files)
        self.branches[branch] = sha
        return sha

    def find(self, revision):
        return revision if revision in self.commits else self.branches.get(revision)


class HubServer:
    """The server; what tests change of its answers are its attributes."""

    def __init__(self):
        self.repositories = {}
        self.large = {}
        """Uploaded large files by their SHA-256."""
        self.requests = []
        """Method and path of each request, in order."""
        self.tokens = set()
        """What was sent as authorization."""
        self.status = {}
        """An error's number for each path that begins so."""
        self.sent = {}
        """What is sent in the place of a file, by its name."""
        self.cut = {}
        """How many more times a download of a file is ended after half of it."""
        self.listed_sizes = {}
        """Sizes in the listing that are others than those of the files."""
        self.info = None
        """What is answered to every question about a repository, if anything."""
        self.chunked = set()
        """Files that are sent without saying how long they are."""

    def add(self, name, files, **options):
        self.repositories[name] = Repository(**options)
        return self.repositories[name].commit(files)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.http.server_port}"

    def __enter__(self):
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.hub = self
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


class Refusal(Exception):
    """An answer with an error's number, and the word that the Hub has for it."""

    def __init__(self, status, code=""):
        self.status, self.code = status, code


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer(self.get)

    def do_HEAD(self):
        self.answer(self.get)

    def do_POST(self):
        self.answer(self.post)

    def do_PUT(self):
        self.answer(self.put)

    @property
    def hub(self):
        return self.server.hub

    def answer(self, how):
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = urllib.parse.urlsplit(self.path).path
        self.hub.requests.append((self.command, path))
        self.hub.tokens.add(self.headers.get("Authorization"))
        with contextlib.suppress(ConnectionError):  # The client may hang up.
            try:
                for begin, status in self.hub.status.items():
                    if path.startswith(begin):
                        raise Refusal(status)
                how([urllib.parse.unquote(part) for part in path.strip("/").split("/")])
            except Refusal as refusal:
                # As a careless server would do it, with the token in the answer.
                told = f"refused {self.headers.get('Authorization')}"
                headers = {"X-Error-Code": refusal.code, "X-Error-Message": told}
                self.send({"error": told}, status=refusal.status, headers=headers)

    def send(self, content, *, status=200, headers=None, length=None):
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def may_write(self):
        return self.headers.get("Authorization") == f"Bearer {TOKEN}"

    def repository(self, owner, name, *, writing=False):
        """The repository that may be read, or written."""
        if writing and not self.may_write():
            raise Refusal(401)
        found = self.hub.repositories.get(f"{owner}/{name}")
        if found is None or (found.private and not self.may_write()):
            raise Refusal(404 if self.may_write() else 401, "RepoNotFound")
        if found.gated and not self.may_write():
            raise Refusal(403, "GatedRepo")
        return found

    def get(self, parts):
        match parts:
            case ["api", "models", owner, name, *rest]:
                self.get_info(owner, name, rest[1] if rest else "main")
            case [owner, name, "resolve", revision, *path]:
                self.get_file(owner, name, revision, "/".join(path))
            case _:
                raise Refusal(404)

    def get_info(self, owner, name, revision):
        if self.hub.info is not None:
            self.send(self.hub.info)
            return
        repository = self.repository(owner, name)
        sha = repository.find(revision)
        if sha is None:
            raise Refusal(404, "RevisionNotFound")
        siblings = []
        for path, content in repository.commits[sha].items():
            entry = {"rfilename": path, "size": self.hub.listed_sizes.get(path, len(content))}
            entry["blobId"] = git_sha1(content)
            if path.endswith(".safetensors"):
                digest = hashlib.sha256(content).hexdigest()
                entry["lfs"] = {"sha256": digest, "size": len(content), "pointerSize": 130}
            siblings.append(entry)
        about = {"id": f"{owner}/{name}", "modelId": f"{owner}/{name}", "sha": sha, "private": repository.private}
        self.send({**about, "siblings": siblings, "tags": []})

    def get_file(self, owner, name, revision, path):
        repository = self.repository(owner, name)
        sha = repository.find(revision)
        if sha is None:
            raise Refusal(404, "RevisionNotFound")
        if path not in repository.commits[sha]:
            raise Refusal(404, "EntryNotFound")
        content = repository.commits[sha][path]
        digest = hashlib.sha256(content).hexdigest() if path.endswith(".safetensors") else git_sha1(content)
        content = self.hub.sent.get(path, content)
        headers = {"X-Repo-Commit": sha, "ETag": f'"{digest}"', "Accept-Ranges": "bytes"}
        if self.command == "GET" and path in self.hub.chunked:
            self.send_chunks(content, headers)
        elif self.command == "GET" and self.hub.cut.get(path, 0):
            self.hub.cut[path] -= 1
            self.send(content[: len(content) // 2], headers=headers, length=len(content))
            self.close_connection = True
        else:
            self.send(content, headers=headers)

    def send_chunks(self, content, headers):
        self.send_response(200)
        for name, value in {**headers, "Transfer-Encoding": "chunked"}.items():
            self.send_header(name, value)
        self.end_headers()
        for start in range(0, len(content), 65536):
            piece = content[start : start + 65536]
            self.wfile.write(b"%x\r\n" % len(piece) + piece + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")

    def post(self, parts):
        if parts == ["api", "validate-yaml"]:
            self.send({"errors": [], "warnings": []})
            return
        words = json.loads(self.body.splitlines()[0]) if self.body else {}
        match parts:
            case ["api", "repos", "create"]:
                self.create(words)
            case ["api", "models", owner, name, "branch", branch]:
                repository = self.repository(owner, name, writing=True)
                repository.branches.setdefault(branch, repository.branches.get("main", ""))
                self.send({})
            case ["api", "models", owner, name, "preupload", _]:
                self.repository(owner, name, writing=True)
                modes = ["lfs" if each["path"].endswith(".safetensors") else "regular" for each in words["files"]]
                files = [
                    {"path": each["path"], "uploadMode": mode, "shouldIgnore": False, "oid": None}
                    for each, mode in zip(words["files"], modes, strict=True)
                ]
                self.send({"files": files})
            case [owner, name, "info", "lfs", "objects", "batch"]:
                self.repository(owner, name.removesuffix(".git"), writing=True)
                objects = [
                    {**each, "actions": {"upload": {"href": f"{self.hub.url}/upload/{each['oid']}", "header": {}}}}
                    for each in words["objects"]
                ]
                self.send({"transfer": "basic", "objects": objects})
            case ["api", "models", owner, name, "commit", branch]:
                self.commit(self.repository(owner, name, writing=True), branch)
            case _:
                raise Refusal(404)

    def put(self, parts):
        match parts:
            case ["upload", digest] if hashlib.sha256(self.body).hexdigest() == digest:
                self.hub.large[digest] = self.body
                self.send(b"", headers={"ETag": '"x"'})
            case _:
                raise Refusal(400)

    def create(self, words):
        if not self.may_write():
            raise Refusal(401)
        name = "/".join(filter(None, (words.get("organization"), words["name"])))
        if name in self.hub.repositories:
            self.send({"error": "You already created this model repo", "url": f"{self.hub.url}/{name}"}, status=409)
            return
        private = words.get("private") is True or words.get("visibility") == "private"
        self.hub.repositories[name] = Repository(private=private)
        self.hub.repositories[name].commit({".gitattributes": b"*.safetensors filter=lfs\n"})
        self.send({"url": f"{self.hub.url}/{name}", "name": name})

    def commit(self, repository, branch):
        files = dict(repository.commits[repository.branches[branch]])
        for line in self.body.splitlines():
            entry = json.loads(line)
            value = entry["value"]
            if entry["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif entry["key"] == "lfsFile":
                files[value["path"]] = self.hub.large[value["oid"]]
        sha = repository.commit(files, branch)
        self.send({"success": True, "commitOid": sha, "commitUrl": f"{self.hub.url}/x/y/commit/{sha}"})
