"""Apache Kafka 4.3.1 from its published jars: its command line tools, and a broker of one node."""
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import unittest

VERSION = "4.3.1"
HERE = os.path.dirname(os.path.abspath(__file__))
JARS = os.environ.get("WEIR_KAFKA_JARS") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "weir", f"kafka-{VERSION}")
JAVA = shutil.which("java", path=os.pathsep.join(
    filter(None, [os.path.join(os.environ["JAVA_HOME"], "bin") if "JAVA_HOME" in os.environ else "",
                  os.environ.get("PATH", "")])))
TIMEOUT = 180


def missing():
    """Why Kafka cannot be run here; None when it can."""
    if JAVA is None:
        return "there is no JRE (java); scripts/setup --compat installs one"
    shown = subprocess.run([JAVA, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', shown)
    if version is None or int(version.group(1)) < 17:
        return f"Kafka {VERSION} needs Java 17, {JAVA} is: {shown.splitlines()[:1]}"
    for jar in (f"kafka_2.13-{VERSION}.jar", f"kafka-tools-{VERSION}.jar", f"kafka-storage-{VERSION}.jar"):
        if not os.path.exists(os.path.join(JARS, jar)):
            return f"{jar} is not in {JARS}; scripts/compat_jars fetches it"
    return None


def require():
    reason = missing()
    if reason:
        print(f"SKIPPED: {reason}", flush=True)
        raise unittest.SkipTest(reason)


def command(main, *arguments, heap="256m"):
    return [JAVA, f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
            f"-Dlog4j2.configurationFile={HERE}/log4j2.properties", "-cp", os.path.join(JARS, "*"), main, *arguments]


def run(main, *arguments, cwd=None):
    """Stdout and stderr as bytes of a tool that must end with 0."""
    done = subprocess.run(command(main, *arguments), cwd=cwd, capture_output=True, timeout=TIMEOUT, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{main} {arguments} ended with {done.returncode}\n{done.stdout[-2000:]!r}\n"
                             f"{done.stderr.decode(errors='replace')[-4000:]}")
    return done.stdout, done.stderr


def dump(folder, files, *options):
    """DumpLogSegments of files below a folder, as lines of text; its complaints, from stderr, are the last ones."""
    output = run("org.apache.kafka.tools.DumpLogSegments", "--files", ",".join(files), *options, cwd=folder)
    return b"".join(output).decode(errors="replace").splitlines()


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Broker:
    """A KRaft broker and controller in one, on a log directory that exists. Stopped by `with`."""

    def __init__(self, folder, log):
        self.folder, self.log = folder, log
        self.port, controller = free_ports(2)
        self.output = os.path.join(folder, "broker.out")
        self.process = None
        with open(os.path.join(log, "meta.properties"), encoding="utf-8") as file:
            meta = dict(line.strip().split("=", 1) for line in file if "=" in line)
        settings = {
            "process.roles": "broker,controller", "node.id": meta["node.id"],
            "controller.quorum.voters": f"{meta['node.id']}@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "controller.listener.names": "CONTROLLER", "log.dirs": log,
            "offsets.topic.replication.factor": 1, "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1, "group.initial.rebalance.delay.ms": 0,
            "auto.create.topics.enable": "false", "log.cleaner.dedupe.buffer.size": 4194304,
            "log.retention.check.interval.ms": 86400000, "num.network.threads": 2, "num.io.threads": 4,
            "background.threads": 2,
        }
        self.settings = os.path.join(folder, "server.properties")
        with open(self.settings, "w", encoding="utf-8") as file:
            file.writelines(f"{name}={value}\n" for name, value in settings.items())

    def __enter__(self):
        with open(self.output, "wb") as output:
            self.process = subprocess.Popen(command("kafka.Kafka", self.settings, heap="512m"), stdout=output,
                                            stderr=subprocess.STDOUT)
        deadline = time.monotonic() + TIMEOUT
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                state = self.process.poll()
                self.__exit__()
                raise AssertionError(f"the broker did not start (exit code {state})\n{self.text()[-6000:]}")
            time.sleep(0.2)  # a process of somebody else's: there is nothing to wait on
        return self

    def _answers(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return True
        except OSError:
            return False

    def stop(self):
        """A clean end; the exit code (143: by SIGTERM, as Kafka ends then)."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(TIMEOUT)

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def text(self):
        with open(self.output, encoding="utf-8", errors="replace") as file:
            return file.read()

    def tool(self, main, *arguments):
        """Stdout as bytes of a tool that asks this broker."""
        return run(main, "--bootstrap-server", f"127.0.0.1:{self.port}", *arguments)[0]

    def topics(self):
        """{topic: (id, partitions, {partition: leader})} as kafka-topics describes them."""
        topics = {}
        for line in self.tool("org.apache.kafka.tools.TopicCommand", "--describe").decode().splitlines():
            fields = dict(field.split(": ", 1) if ": " in field else (field.rstrip(": "), "")
                          for field in line.strip().split("\t"))
            if "TopicId" in fields:
                topics[fields["Topic"]] = (fields["TopicId"], int(fields["PartitionCount"]), {})
            elif "Partition" in fields:
                topics[fields["Topic"]][2][int(fields["Partition"])] = fields["Leader"]
        return topics

    def wait_for_leaders(self):
        """topics() once every partition has a leader."""
        deadline = time.monotonic() + TIMEOUT
        while True:
            topics = self.topics()
            if all(leader == "1" for _, _, leaders in topics.values() for leader in leaders.values()):
                return topics
            if time.monotonic() > deadline:
                raise AssertionError(f"partitions without a leader: {topics}\n{self.text()[-4000:]}")
            time.sleep(0.5)

    def offsets(self, time_spec):
        """{(topic, partition): offset}; time_spec -1 is the end, -2 the start."""
        output = self.tool("org.apache.kafka.tools.GetOffsetShell", "--time", str(time_spec)).decode()
        rows = (line.rsplit(":", 2) for line in output.splitlines())
        return {(topic, int(partition)): int(offset) for topic, partition, offset in rows}

    def records(self, topic, count, *options):
        """What the console consumer prints of `count` records, taken apart, by partition and offset."""
        end, between, null, header_end = "<|end|>", "<|>", "<|null|>", "<|h|>"
        properties = {"print.timestamp": "true", "print.partition": "true", "print.offset": "true",
                      "print.headers": "true", "print.key": "true", "print.value": "true", "key.separator": between,
                      "line.separator": end, "null.literal": null, "headers.separator": header_end}
        arguments = [part for name, value in properties.items()
                     for part in ("--formatter-property", f"{name}={value}")]
        output = self.tool("org.apache.kafka.tools.consumer.ConsoleConsumer", "--topic", topic, "--from-beginning",
                           "--max-messages", str(count), "--timeout-ms", "60000", *options, *arguments)
        def value(data):
            return None if data == null.encode() else data
        records = []
        for line in output.split(end.encode())[:-1]:
            time_text, partition, offset, headers, key, payload = line.split(between.encode(), 5)
            kind, timestamp = time_text.decode().split(":")
            pairs = [] if headers == b"NO_HEADERS" else [
                (name.decode(), value(data))
                for name, data in (pair.split(b":", 1) for pair in headers.split(header_end.encode()))]
            records.append({"partition": int(partition.split(b":")[1]), "offset": int(offset.split(b":")[1]),
                            "timestamp": int(timestamp), "kind": kind, "headers": pairs, "key": value(key),
                            "value": value(payload)})
        return sorted(records, key=lambda record: (record["partition"], record["offset"]))

    def committed(self):
        """{(group, topic, partition): offset} as kafka-consumer-groups shows it."""
        output = self.tool("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", "--describe",
                           "--all-groups").decode()
        rows = [line.split() for line in output.splitlines()]
        return {(row[0], row[1], int(row[2])): int(row[3]) for row in rows
                if len(row) > 3 and row[0] != "GROUP" and row[2].isdigit() and row[3].isdigit()}


if __name__ == "__main__":  # for scripts/test: ctest does not say why a test is skipped
    if why := missing():
        print(f"The compat tests will be SKIPPED: {why}")
