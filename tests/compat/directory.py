"""A data directory with some of everything that Weir writes, and what Weir itself says of it."""
import json
import os
import signal
import subprocess
import time

BIN = os.environ["WEIR_BIN_DIR"]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SMALL = ("--config", "segment.bytes=3000", "--config", "index.interval.bytes=300")
TIMEOUT = 120


class Directory:
    def __init__(self, path):
        self.path = path
        self.log = os.path.join(path, "log")

    def program(self, name, *arguments, stdin=b"", data=True):
        place = ["--data", self.path] if data else [self.path]
        done = subprocess.run([os.path.join(BIN, name), *place, *arguments], input=stdin,
                              capture_output=True, timeout=TIMEOUT, check=False)
        if done.returncode != 0:
            raise AssertionError(f"{name} {arguments} ended with {done.returncode}\n{done.stderr.decode()}")
        return done.stdout

    def weir(self, *arguments, stdin=b""):
        return self.program("weir", *arguments, stdin=stdin)

    def json(self, *arguments):
        return [json.loads(line) for line in self.weir(*arguments, "-o", "json").splitlines()]

    def create(self, topic, *settings, partitions=1):
        self.weir("topic", "create", topic, "--partitions", str(partitions), *settings)

    def produce(self, topic, records, *options, batch=400):
        """Lines of partition, key and value; N is null."""
        lines = b"".join(b"\t".join([b"%d" % partition, key, value]) + b"\n" for partition, key, value in records)
        self.weir("produce", topic, "--parse-partition", "--parse-key", "--null-marker", "N", "--config",
                  f"batch.size={batch}", *options, stdin=lines)

    # What Weir says, in the form in which kafka.py gives what Kafka says.

    def topics(self):
        return {topic["topic"]: topic for topic in self.json("topic", "describe")}

    def records(self, topic):
        """As kafka.Broker.records, without the kind of the timestamp."""
        def value(text):
            return text if text is None else bytes.fromhex(text["hex"]) if isinstance(text, dict) else text.encode()
        rows = [{"partition": row["partition"], "offset": row["offset"], "timestamp": row["timestamp"],
                 "headers": [(name, value(data)) for name, data in row["headers"]], "key": value(row["key"]),
                 "value": value(row["value"])} for row in self.json("consume", topic)]
        return sorted(rows, key=lambda row: (row["partition"], row["offset"]))

    def committed(self):
        """{(group, topic, partition): what `weir group describe` says}."""
        groups = self.weir("group", "list").decode().split()
        rows = [row for group in groups for row in self.json("group", "describe", group)]
        return {(row["group"], row["topic"], row["partition"]): row for row in rows}

    def files(self, *suffixes):
        """Names of partition files below log/, in order."""
        return sorted(os.path.join(os.path.relpath(folder, self.log), name)
                      for folder, _, names in os.walk(self.log) for name in names if name.endswith(suffixes))


def some_records(count, partitions):
    """Text, bytes that are no UTF-8, null and empty keys and values."""
    records = []
    for i in range(count):
        key = (b"key %d" % i, b"N", b"", b"\xff\xfe %d" % i)[i % 4]
        value = (b"value %d " % i + b"abc" * (i % 40), b"\x80\x00\x01" * (1 + i % 9), b"N", b"")[(i // 4) % 4]
        records.append((i % partitions, key, value))
    return records


def fill_codecs(directory):
    for codec in CODECS:
        topic = f"codec-{codec}"
        directory.create(topic, *SMALL, partitions=2)
        directory.produce(topic, some_records(300, 2), "--compression", codec)
        directory.produce(topic, some_records(40, 2), "--compression", codec, "--header", "trace=abc", "--header",
                          "null=N", "--header", "trace=\u00e4", "--header", "empty=")
    # The log compresses anew what came in another codec.
    directory.create("converted", *SMALL, "--config", "compression.type=lz4")
    directory.produce("converted", some_records(200, 1), "--compression", "gzip")


def fill_kinds(directory):
    directory.create("append-time", *SMALL, "--config", "message.timestamp.type=LogAppendTime")
    for batch in (300, 600):
        directory.produce("append-time", some_records(100, 1), batch=batch)
    directory.create("in-memory", *SMALL, "--config", "weir.durability=memory")
    directory.produce("in-memory", some_records(200, 1), "--compression", "zstd")
    directory.create("never-written", partitions=3)
    directory.create("dots.and_under-scores-7")
    directory.produce("dots.and_under-scores-7", some_records(10, 1))


def fill_changes(directory):
    directory.create("grown", "--config", "weir.ordered=true")
    directory.produce("grown", some_records(50, 1))
    directory.weir("topic", "alter", "grown", "--partitions", "3", "--force")
    directory.produce("grown", some_records(50, 2))
    directory.create("altered", *SMALL, "--config", "retention.ms=3600000")
    directory.produce("altered", some_records(100, 1))
    directory.weir("topic", "alter", "altered", "--config", "segment.bytes=2000000", "--config",
                   "message.timestamp.type=LogAppendTime", "--config", "weir.durability=memory", "--delete-config",
                   "retention.ms")
    directory.produce("altered", some_records(100, 1))
    directory.create("trimmed", *SMALL, partitions=3)
    directory.produce("trimmed", some_records(600, 3), "--compression", "snappy")
    directory.weir("topic", "delete-records", "trimmed", "--partition", "0", "--before", "97")
    directory.weir("topic", "delete-records", "trimmed", "--partition", "1", "--before", "-1")
    for topic in ("deleted", "born-again"):
        directory.create(topic, *SMALL, partitions=2)
        directory.produce(topic, some_records(100, 2))
        directory.weir("consume", topic, "--group", "audit", "--max-messages", "10")
        directory.weir("topic", "delete", topic)
    directory.create("born-again")
    directory.produce("born-again", some_records(20, 1))


def fill_groups(directory):
    directory.weir("consume", "codec-zstd", "--group", "audit", "--max-messages", "100")
    directory.weir("consume", "grown", "--group", "audit")
    directory.weir("consume", "codec-zstd", "--group", "audit", "--max-messages", "50")
    directory.weir("group", "reset", "trimmer", "--topic", "trimmed", "--to-earliest", "--execute")
    directory.program("word_count", "--quiet", "--until-end", "--text", "-", stdin=b"to be or not to be\n" * 30)


def fill_after_a_kill(directory):
    """A writer that dies: the next appends are of later leader epochs."""
    directory.create("killed", *SMALL, partitions=2)
    for _ in range(2):
        before = len(directory.records("killed"))
        writer = subprocess.Popen([os.path.join(BIN, "weir"), "--data", directory.path, "produce", "killed",
                                   "--config", "batch.size=200"], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            writer.stdin.write(b"".join(b"line %d\n" % i for i in range(100)))
            writer.stdin.flush()
            deadline = time.monotonic() + TIMEOUT
            while len(directory.records("killed")) == before:
                if time.monotonic() > deadline or writer.poll() is not None:
                    raise AssertionError("nothing was written before the kill")
            writer.send_signal(signal.SIGKILL)
        finally:
            writer.kill()
            writer.communicate()
        directory.produce("killed", some_records(30, 2))


def fill(path):
    directory = Directory(path)
    for part in (fill_codecs, fill_kinds, fill_changes, fill_groups, fill_after_a_kill):
        part(directory)
    return directory
