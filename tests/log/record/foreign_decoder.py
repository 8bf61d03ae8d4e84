"""Reads a file of record batches with kafka-python and prints what is in them, a record a line.

Usage: foreign_decoder.py FILE      Exits 3 when a package is missing.
Line:  offset timestamp key value [name=value ...]; bytes as hex, "-" for empty, "~" for null.
"""

import sys

try:
    # What kafka-python decompresses with; without one of them it only fails at a batch.
    import lz4.frame  # noqa: F401
    import snappy  # noqa: F401
    import zstandard  # noqa: F401
    from kafka.record.memory_records import MemoryRecords
except ImportError as missing:
    packages = "python3-kafka python3-lz4 python3-snappy python3-zstandard"
    print(f"{missing}; run: apt-get install {packages}", file=sys.stderr)
    sys.exit(3)


def text(value):
    if value is None:
        return "~"
    return bytes(value).hex() or "-"


def main(path):
    with open(path, "rb") as file:
        records = MemoryRecords(file.read())
    while records.has_next():
        batch = records.next_batch()
        if not batch.validate_crc():
            sys.exit("crc mismatch")
        for record in batch:
            headers = [f"{text(name.encode())}={text(value)}" for name, value in record.headers]
            print(record.offset, record.timestamp, text(record.key), text(record.value), *headers)


if __name__ == "__main__":
    main(sys.argv[1])
