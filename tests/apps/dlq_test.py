"""weir dlq as a user runs it, on the letters of chat_sessions."""
import json
import unittest

from support import Case


class Letters(Case):
    def setUp(self):
        super().setUp()
        self.run_program("chat_sessions", "--quiet", "--sessions", "20", "--messages", "400", "--fail-rate", "0",
                         "--nonsense-rate", "0.05")
        self.letters = self.list()

    def list(self, *arguments):
        return [json.loads(line) for line in self.weir("dlq", "list", "chat.dlq", "-o", "json", *arguments).splitlines()]

    def redrive(self, *arguments):
        return json.loads(self.weir("dlq", "redrive", "chat.dlq", "-o", "json", *arguments))

    def test_list_has_every_letter_and_chooses(self):
        consumed = self.weir("consume", "chat.dlq").splitlines()
        self.assertEqual(len(self.letters), len(consumed))
        self.assertGreater(len(self.letters), 5)
        for letter in self.letters:
            self.assertEqual((letter["reason"], letter["attempts"], letter["redriven"]), ("permanent", "1", False))
        session = self.letters[0]["session"]
        self.assertEqual(self.list("--session", session),
                         [letter for letter in self.letters if letter["session"] == session])
        self.assertEqual(self.list("--reason", "exhausted"), [])
        text = self.weir("dlq", "list", "chat.dlq").decode().splitlines()
        self.assertEqual(text[0].split()[:4], ["PARTITION", "OFFSET", "SESSION", "REASON"])
        self.assertEqual(len(text), len(self.letters) + 1)

    def test_show_has_the_record_and_its_headers(self):
        letter = self.letters[-1]
        place = ("--partition", str(letter["partition"]), "--offset", str(letter["offset"]))
        text = self.weir("dlq", "show", "chat.dlq", *place).decode()
        for part in (f"key        {letter['session']}", "%$#!", "__session.dlq.event.id = " + letter["eventId"],
                     "__session.dlq.reason = permanent", "redriven   no"):
            self.assertIn(part, text)
        record = json.loads(self.weir("dlq", "show", "chat.dlq", "-o", "json", *place))
        self.assertEqual(record["key"], letter["session"])

    def test_redrive_sends_in_order_and_once(self):
        count = len(self.letters)
        self.assertEqual(self.redrive(), {"topic": "chat.dlq", "redriven": count, "already": 0, "held": 0,
                                          "executed": False})
        before = len(self.weir("consume", "chat").splitlines())
        self.assertEqual(self.redrive("--execute")["redriven"], count)
        again = self.redrive("--execute")
        self.assertEqual((again["redriven"], again["already"]), (0, count))
        sent = {}
        for line in self.weir("consume", "chat", "-o", "json").splitlines():
            record = json.loads(line)
            headers = dict(record["headers"])
            if "__session.dlq.redrive.count" in headers:
                self.assertEqual(headers["__session.dlq.redrive.count"], "1")
                sent.setdefault(record["key"], []).append(headers["event.id"])
        expected = {}
        for letter in self.letters:
            expected.setdefault(letter["session"], []).append(letter["eventId"])
        self.assertEqual(sent, expected)
        self.assertEqual(len(self.weir("consume", "chat").splitlines()), before + count)
        self.assertTrue(all(letter["redriven"] for letter in self.list()))

    def test_mistakes(self):
        self.assert_fails(3, "nobody", arguments=("dlq", "list", "nobody"))
        self.assert_fails(3, "no letter 99999", arguments=("dlq", "show", "chat.dlq", "--partition", "0", "--offset",
                                                           "99999"))
        self.assert_fails(3, "nobody", arguments=("dlq", "redrive", "nobody", "--execute"))
        self.assert_fails(2, "--max-redrives", arguments=("dlq", "redrive", "chat.dlq", "--max-redrives", "0"))


if __name__ == "__main__":
    unittest.main()
