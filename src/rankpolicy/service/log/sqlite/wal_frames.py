"""The frames of a write-ahead log, looked at before SQLite does: it drops all frames from the first damaged one on, without a word."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from rankpolicy.service.errors import DamagedStoreError

_HEADER, _FRAME_HEADER = 32, 24
_MAGIC = (0x377F0682, 0x377F0683)  # words of the checksums are little-endian, big-endian
_FRAMES_AT_ONCE = 1_000


def check_frames(database: Path) -> None:
    """Refuse a write-ahead log in which committed transactions follow a damaged frame.

    A power loss may leave any of the frames of the last transaction, but SQLite syncs each transaction before it writes the next. So where
    the checksums go on from a commit at or after the damaged frame into a further frame, that commit was on disk.
    """
    path = Path(f"{database}-wal")
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        header = file.read(_HEADER)
        words = np.frombuffer(header, ">u4") if len(header) == _HEADER else np.zeros(8, ">u4")
        if not header.strip(b"\0"):  # nothing was written yet
            return
        magic, page_size = int(words[0]), int(words[2])
        order = "<u4" if magic == _MAGIC[0] else ">u4"
        is_sound = magic in _MAGIC and page_size >= 512 and page_size & (page_size - 1) == 0 and page_size <= 65_536
        if is_sound:
            sums = _checksums(np.frombuffer(header[:24], order)[None], np.zeros((1, 2), np.uint32))[0]
            is_sound = list(sums) == [int(word) for word in words[6:]]
        if not is_sound:  # it is synced before the first frame
            raise _damaged(path, "its header")
        salts, last = words[4:6], words[6:8].astype(np.uint32)
        number, is_broken, after_commit = 0, False, False
        while block := file.read(_FRAMES_AT_ONCE * (_FRAME_HEADER + page_size)):
            num_frames = len(block) // (_FRAME_HEADER + page_size)
            if not num_frames:
                return
            frames = np.frombuffer(block, np.uint8)[: num_frames * (_FRAME_HEADER + page_size)].reshape(num_frames, -1)
            heads = np.ascontiguousarray(frames[:, :_FRAME_HEADER]).view(">u4")
            content = np.ascontiguousarray(np.concatenate([frames[:, :8], frames[:, _FRAME_HEADER:]], axis=1))
            stored = heads[:, 4:6].astype(np.uint32)
            before = np.concatenate([last[None], stored[:-1]])
            follows = (_checksums(content.view(order), before) == stored).all(1) & (heads[:, 2:4] == salts).all(1)
            for frame in range(num_frames):
                number += 1
                if is_broken and after_commit and follows[frame]:
                    raise _damaged(path, f"a frame before frame {number}")
                is_broken = is_broken or not follows[frame]
                after_commit = bool(heads[frame, 1])
            last = stored[-1]


def _damaged(path: Path, what: str) -> DamagedStoreError:
    return DamagedStoreError(
        f"{path} is damaged ({what}), and acknowledged lists and events would be lost. Restore the database from a backup; "
        f"to go on without what was lost, move {path} away."
    )


def _checksums(words: np.ndarray, before: np.ndarray) -> np.ndarray:
    """SQLite's checksum of each row of words, begun with the checksum of the frame before: linear, modulo 2^32."""
    from_before, from_words = _weights(words.shape[1] // 2)
    sums: np.ndarray = before @ from_before + words.astype(np.uint32) @ from_words
    return sums


@lru_cache(maxsize=4)
def _weights(num_pairs: int) -> tuple[np.ndarray, np.ndarray]:
    """What the sums before and each word add to the two sums; s0 += x0 + s1, then s1 += x1 + s0, for each pair of words."""
    sums = np.eye(2, dtype=np.uint32)  # what s0 and s1 after a pair contribute to the sums at the end
    step = np.array([[1, 1], [1, 2]], np.uint32)
    from_words = []
    for _ in range(num_pairs):  # from the last pair to the first; x1 is added to s1, x0 to s0 and through it to s1
        from_words += [sums[1], sums[0] + sums[1]]
        sums = step @ sums
    return sums, np.array(from_words[::-1])
