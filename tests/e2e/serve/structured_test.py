# SPDX-License-Identifier: Apache-2.0
"""Structured output, the web page's files and the configuration file, on the
demo checkpoint. It was never trained to write these forms: whatever is right
here is right by constraint."""

import concurrent.futures
import json
import os
import re
import tempfile
import unittest

from belay_server import ROOT, Server

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 12},
        "age": {"type": "integer", "minimum": 18, "maximum": 99},
        "kind": {"enum": ["climber", "belayer", None]},
        "tags": {"type": "array", "items": {"type": "string", "pattern": "^[a-z]{2,6}$"},
                 "minItems": 1, "maxItems": 3},
    },
    "required": ["name", "age", "kind", "tags"],
    "additionalProperties": False,
}
TOOLS = [
    {"type": "function", "function": {"name": "set_rope", "parameters": {
        "type": "object",
        "properties": {"length_m": {"type": "integer", "minimum": 10, "maximum": 80},
                       "colour": {"type": "string", "enum": ["red", "blue"]}},
        "required": ["length_m", "colour"]}}},
    {"type": "function", "function": {"name": "stop", "parameters": {"type": "object",
                                                                    "properties": {}}}},
]


def setUpModule():
    global server, config
    # The same options in a file: the whole module runs on it.
    config = tempfile.NamedTemporaryFile("w", suffix=".toml", delete=False)
    config.write('[engine]\nmax-batch = 6\nmax_context = 1024\nspeculative = false\n')
    config.close()
    server = Server("--config", config.name)


def tearDownModule():
    code = server.stop()
    os.unlink(config.name)
    assert code == 0, f"exit {code}: " + "\n".join(server.lines)


def schema_format(schema):
    return {"type": "json_schema", "json_schema": {"name": "n", "strict": True,
                                                   "schema": schema}}


def check_person(test, value):
    test.assertEqual(list(value), ["name", "age", "kind", "tags"])
    test.assertTrue(1 <= len(value["name"]) <= 12)
    test.assertTrue(isinstance(value["age"], int) and 18 <= value["age"] <= 99)
    test.assertIn(value["kind"], ["climber", "belayer", None])
    test.assertTrue(1 <= len(value["tags"]) <= 3)
    for tag in value["tags"]:
        test.assertRegex(tag, r"^[a-z]{2,6}$")


class StructuredTest(unittest.TestCase):
    def test_answers_are_valid_for_their_schema(self):
        def ask(seed):
            return server.chat("Who are you?", temperature=seed / 8, seed=seed,
                               max_tokens=300, response_format=schema_format(PERSON))

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(ask, range(16)))
        for answer in answers:
            choice = answer["choices"][0]
            self.assertEqual(choice["finish_reason"], "stop", choice)
            check_person(self, json.loads(choice["message"]["content"]))

    def test_streams_and_many_choices(self):
        text = {}
        for data in server.events("/v1/chat/completions", {
                "messages": [{"role": "user", "content": "hi"}], "n": 3, "temperature": 1,
                "seed": 5, "max_tokens": 300, "response_format": schema_format(PERSON)}):
            if data == "[DONE]":
                break
            for choice in json.loads(data)["choices"]:
                text[choice["index"]] = (text.get(choice["index"], "") +
                                         (choice["delta"].get("content") or ""))
        self.assertEqual(len(text), 3)
        for one in text.values():
            check_person(self, json.loads(one))

    def test_any_object(self):
        n_whole = 0
        for seed in range(8):
            choice = server.chat("Give me JSON.", seed=seed, temperature=1, max_tokens=400,
                                 response_format={"type": "json_object"})["choices"][0]
            text = choice["message"]["content"]
            self.assertTrue(text.lstrip().startswith("{"), text)
            if choice["finish_reason"] == "stop":
                n_whole += 1
                self.assertIsInstance(json.loads(text), dict)
        self.assertGreater(n_whole, 0)

    def test_reasoning_stays_free(self):
        answer = server.chat("Who are you?", thinking={"type": "enabled"}, top_k=1,
                             max_completion_tokens=600, response_format=schema_format(PERSON))
        message = answer["choices"][0]["message"]
        if answer["choices"][0]["finish_reason"] == "length":
            self.skipTest("the demo model thinks too long")
        check_person(self, json.loads(message["content"]))

    def test_a_cut_answer_is_the_beginning_of_one(self):
        choice = server.chat("hi", max_tokens=3,
                             response_format=schema_format(PERSON))["choices"][0]
        self.assertEqual(choice["finish_reason"], "length")
        self.assertTrue('{"name":'.startswith(
            choice["message"]["content"].replace(" ", "").replace("\n", "")[:8]))

    def test_required_tools_are_called_with_valid_arguments(self):
        for seed in range(6):
            choice = server.chat("Prepare.", tools=TOOLS, tool_choice="required",
                                 temperature=1, seed=seed, max_tokens=400)["choices"][0]
            if choice["finish_reason"] == "length":
                continue
            self.assertEqual(choice["finish_reason"], "tool_calls", choice)
            for call in choice["message"]["tool_calls"]:
                arguments = json.loads(call["function"]["arguments"])
                if call["function"]["name"] == "stop":
                    self.assertEqual(arguments, {})
                    continue
                self.assertEqual(call["function"]["name"], "set_rope")
                self.assertTrue(10 <= arguments["length_m"] <= 80)
                self.assertIn(arguments["colour"], ["red", "blue"])

    def test_a_named_tool_is_the_one_that_is_called(self):
        choice = server.chat(
            "Prepare.", tools=TOOLS, parallel_tool_calls=False, max_tokens=300,
            tool_choice={"type": "function", "function": {"name": "set_rope"}})["choices"][0]
        calls = choice["message"]["tool_calls"]
        self.assertEqual([c["function"]["name"] for c in calls], ["set_rope"])

    def test_what_cannot_be_kept_is_refused_by_name(self):
        for schema, code in (({"not": {}}, "GRAM-002"), ({"type": "thing"}, "GRAM-001"),
                             ({"pattern": "(?=x)"}, "GRAM-003"),
                             ({"minimum": 2, "maximum": 1}, "GRAM-004"),
                             ({"$ref": "#/nowhere"}, "GRAM-006")):
            error = server.chat("hi", expect=400, response_format=schema_format(schema))
            self.assertEqual(error["error"]["code"], code)
        # And the server lives.
        server.chat("hi", max_tokens=1)


class PageTest(unittest.TestCase):
    def test_the_page_and_all_that_it_asks_for(self):
        seen, todo = set(), ["/"]
        while todo:
            path = todo.pop()
            if path in seen:
                continue
            seen.add(path)
            status, headers, body = server.request("GET", path)
            self.assertEqual(status, 200, path)
            headers = {name.lower(): value for name, value in headers.items()}
            self.assertIn("content-security-policy", headers)
            text = body.decode()
            self.assertNotRegex(text, r"https?://(?!www\.w3\.org/)", path)
            if path == "/":
                self.assertIn("text/html", headers["content-type"])
                self.assertNotRegex(text, r"<script>|\son\w+=|\sstyle=")
                todo += ["/" + name for name in re.findall(r'(?:src|href)="([\w.]+)"', text)]
            if path.endswith(".js"):
                self.assertIn("javascript", headers["content-type"])
                todo += ["/" + name for name in re.findall(r"from '\./([\w.]+)'", text)]
        self.assertGreater(len(seen), 8)

    def test_every_text_of_the_page_is_in_both_languages(self):
        with open(os.path.join(ROOT, "src/server/web/words.js"), encoding="utf-8") as f:
            words = f.read()
        with open(os.path.join(ROOT, "src/server/web/index.html"), encoding="utf-8") as f:
            page = f.read()
        en, zh = re.findall(r"const (?:en|zh) = \{(.*?)\n\};", words, re.S)
        keys = [set(re.findall(r"^  (\w+):", part, re.M)) for part in (en, zh)]
        self.assertEqual(keys[0], keys[1])
        used = set(re.findall(r'data-i18n(?:-\w+)?="(\w+)"', page))
        self.assertLessEqual(used, keys[0])


if __name__ == "__main__":
    unittest.main()
