"""Stops a process while it is sending: stop_in_transfer.py PID FROM_BYTES UNTIL_BYTES SECONDS

Watches the bytes that the process's TCP connections have had acknowledged, through the kernel's socket diagnostics, and
sends SIGSTOP once between FROM and UNTIL have been since the start. Prints `stopped N`, `missed N` when it was too late,
or `quiet` after SECONDS.
"""

import contextlib
import os
import signal
import socket
import struct
import sys
import time

NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
NLMSG_ERROR, NLMSG_DONE = 2, 3
REQUEST_AND_DUMP = 0x301
ESTABLISHED = 1 << 1
INET_DIAG_INFO = 2
MESSAGE_BYTES = 72
INODE_AT = 68
ACKED_AT = 120
POLL_SECONDS = 0.0005


def inodes_of(pid):
    """The sockets among a process's open files."""
    found = set()
    folder = f"/proc/{pid}/fd"
    for name in os.listdir(folder):
        try:
            target = os.readlink(f"{folder}/{name}")
        except OSError:
            continue
        if target.startswith("socket:["):
            found.add(int(target[8:-1]))
    return found


def connections(link):
    """Inode and acknowledged bytes of each established TCP connection over IPv4."""
    diag = struct.pack("=BBBBI", socket.AF_INET, socket.IPPROTO_TCP, 1 << (INET_DIAG_INFO - 1), 0, ESTABLISHED) + bytes(48)
    link.send(struct.pack("=IHHII", 16 + len(diag), SOCK_DIAG_BY_FAMILY, REQUEST_AND_DUMP, 1, 0) + diag)
    while True:
        data = link.recv(1 << 20)
        at = 0
        while at < len(data):
            length, kind = struct.unpack_from("=IH", data, at)
            if kind in (NLMSG_DONE, NLMSG_ERROR):
                return
            yield from one_connection(data[at + 16 : at + length])
            at += (length + 3) & ~3


def one_connection(message):
    (inode,) = struct.unpack_from("=I", message, INODE_AT)
    at = MESSAGE_BYTES
    while at + 4 <= len(message):
        length, kind = struct.unpack_from("=HH", message, at)
        if kind == INET_DIAG_INFO and length >= 4 + ACKED_AT + 8:
            yield inode, struct.unpack_from("=Q", message, at + 4 + ACKED_AT)[0]
        at += max(4, (length + 3) & ~3)


def main():
    pid, low, high, seconds = (int(word) for word in sys.argv[1:5])
    with contextlib.suppress(OSError):
        os.nice(-15)  # The moment is short; where that is not allowed, more tries are needed.
    link = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG)
    link.bind((0, 0))
    before = None
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        own = inodes_of(pid)
        sent = {inode: acked for inode, acked in connections(link) if inode in own}
        if before is None:
            before = sent
            print("watching", flush=True)
        moved = sum(max(0, acked - before.get(inode, 0)) for inode, acked in sent.items())
        if moved >= low:
            if moved <= high:
                os.kill(pid, signal.SIGSTOP)
                print(f"stopped {moved}", flush=True)
            else:
                print(f"missed {moved}", flush=True)
            return
        time.sleep(POLL_SECONDS)
    print("quiet", flush=True)


main()
