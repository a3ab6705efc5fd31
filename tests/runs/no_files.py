"""What may lie where a file is expected, and the sentence that it gets."""

import contextlib
import os
import socket
import threading

from srwm.errors import InputError

SENTENCES = {
    "pipe": "is a pipe; expected a file",
    "device": "is a device; expected a file",
    "socket": "is a socket; expected a file",
    "nothing": "is a link to what does not exist",
    "folder": "is a folder; expected a file",
}


def put(path, kind):
    """Put something that is no file at a path."""
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "socket":
            # The path of a socket is short; its name stays when it is closed.
            with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as made:
                made.bind(path.name)
        case "nothing":
            path.symlink_to("nowhere")
        case "folder":
            path.mkdir()
    return path


def outcome(call):
    """What a call gives, or the sentence of its error, from a thread that the test does not wait for if it hangs."""
    found = []

    def run():
        try:
            found.append(call())
        except InputError as error:
            found.append(str(error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(20)
    assert found, "it hangs"
    return found[0]
