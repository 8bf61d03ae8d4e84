"""chat_sessions as a user runs it: its answers by an oracle of this file, stops, kills, mistakes."""
import json
import os
import signal
import subprocess
import time
import unittest

from support import FULL, TIMEOUT, Case


def expected_answers(texts, dead):
    """[(number, answer)] of a session's messages, applied one after the other."""
    city = ""
    answers = []
    for number, text in enumerate(texts, 1):
        if number in dead:
            continue
        if text.startswith("book "):
            city = text[len("book "):]
            answer = f"booked {city}"
        elif text.startswith("make it "):
            before, city = city, text[len("make it "):] if city else ""
            answer = f"changed {before} to {city}" if before else "nothing to change"
        elif text == "confirm":
            answer = f"confirmed {city}" if city else "nothing to confirm"
        else:
            assert text == "cancel", text
            before, city = city, ""
            answer = f"cancelled {before}" if before else "nothing to cancel"
        answers.append((number, answer))
    return answers


class ChatCase(Case):
    def chat(self, *arguments, **keywords):
        return self.run_program("chat_sessions", "--quiet", "-o", "json", *arguments, **keywords)

    def lines(self, topic):
        """{session: [(number, text)]} of a topic."""
        found = {}
        for line in self.weir("consume", topic, "-o", "json").splitlines():
            record = json.loads(line)
            number, text = record["value"].split("\t", 1)
            found.setdefault(record["key"], []).append((int(number), text))
        return found

    def check_against_oracle(self, messages):
        """Every session of the topics; returns the number of dead letters."""
        sent, answers, letters = self.lines("chat"), self.lines("chat.answers"), self.lines("chat.dlq")
        self.assertEqual(sum(map(len, sent.values())), messages)
        for session, said in sent.items():
            self.assertEqual([number for number, _ in said], list(range(1, len(said) + 1)))
            dead = {number for number, _ in letters.get(session, [])}
            seen = []
            for answer in answers.get(session, []):
                if answer not in seen:  # a crash may repeat one
                    seen.append(answer)
            self.assertEqual(seen, expected_answers([text for _, text in said], dead), session)
        return sum(len({number for number, _ in session}) for session in letters.values())


class Chats(ChatCase):
    def test_every_session_gets_the_answers_of_its_own_order(self):
        messages = 50_000 if FULL else 4_000
        result = json.loads(self.chat("--sessions", "200", "--messages", str(messages), "--fail-rate", "0.2",
                                      "--nonsense-rate", "0.01", "--back-off-ms", "1"))
        self.assertEqual(result["orderViolations"], 0)
        self.assertEqual(result["unanswered"], 0)
        self.assertGreater(result["retries"], messages * 0.2)
        self.assertEqual(result["deadLetters"], self.check_against_oracle(messages))
        self.assertEqual(result["answers"] + result["deadLetters"], messages)

    def test_what_is_exhausted_or_quarantined_is_a_dead_letter_and_nothing_else(self):
        result = json.loads(self.chat("--sessions", "50", "--messages", "2000", "--fail-rate", "0.5", "--attempts", "2",
                                      "--back-off-ms", "1", "--quarantine"))
        self.assertEqual(result["orderViolations"], 0)
        self.assertEqual(result["deadLetters"], self.check_against_oracle(2000))
        reasons = set()
        for line in self.weir("consume", "chat.dlq", "-o", "json").splitlines():
            headers = dict(json.loads(line)["headers"])
            reasons.add(headers["__session.dlq.reason"])
        self.assertEqual(reasons, {"exhausted", "quarantined"})

    def test_the_text_says_the_same(self):
        text = self.run_program("chat_sessions", "--quiet", "--sessions", "5", "--messages", "100").decode()
        self.assertRegex(text, r"order violations +0\n")
        self.assertRegex(text, r"messages +100\n")


class Stops(ChatCase):
    ARGUMENTS = ("--sessions", "100", "--fail-rate", "0.2", "--back-off-ms", "1")

    def start(self):
        """A run that has answered something and would go on for minutes."""
        command = self.command("chat_sessions", "--quiet", "-o", "json", *self.ARGUMENTS, "--messages", "600000",
                               "--rate", "2000")
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + TIMEOUT
        consume = self.command("weir", "consume", "chat.answers", "--max-messages", "1")
        while not subprocess.run(consume, capture_output=True, check=False).stdout:
            self.assertIsNone(process.poll())
            self.assertLess(time.monotonic(), deadline)
        return process

    def test_ctrl_c_drains_and_the_next_run_goes_on(self):
        process = self.start()
        process.send_signal(signal.SIGINT)
        output, diagnostics = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 0, diagnostics)
        result = json.loads(output)
        self.assertTrue(result["interrupted"])
        self.assertEqual(result["orderViolations"], 0)
        messages = max(result["messages"], 1000)
        again = json.loads(self.chat(*self.ARGUMENTS, "--messages", str(messages)))
        self.assertEqual((again["orderViolations"], again["unanswered"], again["repeatedAnswers"]), (0, 0, 0))

    def test_killed_runs_skip_nothing(self):
        for _ in range(5 if FULL else 2):
            process = self.start()
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        again = json.loads(self.chat(*self.ARGUMENTS, "--messages", "3000"))
        self.assertEqual((again["orderViolations"], again["unanswered"]), (0, 0))
        self.check_against_oracle(again["messages"])


class Mistakes(ChatCase):
    def test_bad_options_are_named(self):
        for arguments, part in ((("--fail-rate", "2"), "--fail-rate"), (("--sessions", "0"), "--sessions"),
                                (("--workers", "0"), "--workers"), (("--back-off-ms", "-1"), "--back-off-ms"),
                                (("--messages", "many"), "--messages")):
            self.assert_fails(2, part, program="chat_sessions", arguments=arguments)
        self.assert_fails(2, "not a name", program="chat_sessions", arguments=("--topic", "not a name"))

    def test_help_has_examples(self):
        text = self.run_program("chat_sessions", "--help").decode()
        for part in ("--sessions", "--messages", "--fail-rate", "--back-off-ms", "--seed", "Examples:"):
            self.assertIn(part, text)


if __name__ == "__main__":
    unittest.main()
