"""The model file that crates/scoring/src/reader/file.rs reads."""

import hashlib
import json
import struct

import numpy as np

MAGIC = b"ASSAYRDR"


def write_model(path, header, tables):
    """Writes the model and returns its SHA-256. `tables` are numpy arrays of int8, uint32 or float32."""
    blocks = [np.ascontiguousarray(table).astype(table.dtype.newbyteorder("<")).tobytes() for table in tables.values()]
    listed = [[name, len(block)] for name, block in zip(tables, blocks)]
    text = json.dumps({**header, "tables": listed}, sort_keys=True).encode()
    content = MAGIC + struct.pack("<I", len(text)) + text + b"".join(blocks)
    checksum = hashlib.sha256(content)
    path.write_bytes(content + checksum.digest())
    return checksum.hexdigest()
