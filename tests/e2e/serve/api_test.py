# SPDX-License-Identifier: Apache-2.0
"""What the API answers, on the demo checkpoint: its answers are known token for
token (data/demo/samples.json)."""

import concurrent.futures
import json
import os
import unittest

from belay_server import ROOT, Server, joined

HELLO = "Hello! I am a tiny DeepSeek-V4 model. Ask me about Ascend NPUs."
CHAT = "/v1/chat/completions"
EOS = "<｜end▁of▁sentence｜>"


def setUpModule():
    global server
    server = Server("--max-batch", "8", "--max-context", "1024")


def tearDownModule():
    code = server.stop()
    assert code == 0, f"exit {code}: " + "\n".join(server.lines)


def samples():
    with open(os.path.join(ROOT, "data/demo/samples.json"),
              encoding="utf-8") as f:
        return json.load(f)["samples"]


class ChatTest(unittest.TestCase):
    def test_every_sample_at_once(self):
        def ask(sample):
            # top_k 1 is greedy also in thinking mode, where temperature is
            # ignored.
            answer = server.chat(
                sample["messages"], top_k=1, max_completion_tokens=512,
                thinking={"type": "enabled" if sample["thinking"]
                          else "disabled"})
            return answer["choices"][0], answer["usage"]

        all_samples = samples()
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            answers = list(pool.map(ask, all_samples))
        n_calls = 0
        for sample, (choice, usage) in zip(all_samples, answers):
            message = choice["message"]
            self.assertEqual(usage["prompt_tokens"],
                             len(sample["prompt_ids"]))
            self.assertEqual(usage["completion_tokens"],
                             len(sample["token_ids"]))
            text = sample["text"]
            if sample["thinking"]:
                reasoning = message.get("reasoning_content", "")
                self.assertTrue(text.startswith(reasoning + "</think>"), text)
                text = text[len(reasoning + "</think>"):]
                details = usage["completion_tokens_details"]
                self.assertGreater(details["reasoning_tokens"], 0)
            if "tool_calls" in message:
                n_calls += len(message["tool_calls"])
                self.assertEqual(choice["finish_reason"], "tool_calls")
                self.assertTrue(text.startswith(message["content"] or ""))
                for call in message["tool_calls"]:
                    self.assertIn(call["function"]["name"], text)
                    json.loads(call["function"]["arguments"])
            else:
                self.assertEqual(choice["finish_reason"], "stop")
                self.assertEqual(message["content"] + EOS, text)
        self.assertGreater(n_calls, 0)

    def test_streams_hold_what_whole_answers_do(self):
        events = list(server.events(CHAT, {
            "messages": [{"role": "user", "content": "Hello!"}],
            "temperature": 0, "stream_options": {"include_usage": True}}))
        self.assertEqual(events[-1], "[DONE]")
        self.assertEqual(joined(events), HELLO)
        chunks = [json.loads(event) for event in events[:-1]]
        self.assertEqual(chunks[0]["choices"][0]["delta"]["role"], "assistant")
        self.assertEqual(chunks[-1]["choices"], [])
        usage = chunks[-1]["usage"]
        self.assertEqual(usage, server.chat("Hello!")["usage"] | {
            "prompt_tokens_details": usage["prompt_tokens_details"],
            "prompt_cache_hit_tokens": usage["prompt_cache_hit_tokens"],
            "prompt_cache_miss_tokens": usage["prompt_cache_miss_tokens"]})
        self.assertEqual([c["choices"][0]["finish_reason"]
                          for c in chunks[:-1]].count("stop"), 1)
        self.assertEqual({c["usage"] and 1 for c in chunks[:-1]}, {None})
        self.assertEqual(len({c["id"] for c in chunks}), 1)
        self.assertGreater(len(chunks), 15)  # token by token

    def test_thinking_ignores_what_the_official_service_ignores(self):
        body = {"messages": [{"role": "user", "content": "What is 43 + 37?"}],
                "thinking": {"type": "enabled"}, "temperature": 0.1,
                "top_p": 0.5, "seed": 3, "top_k": 1}
        answer = server.post(CHAT, body)
        notes = {(n["code"], n["param"]) for n in answer["belay_notes"]}
        self.assertEqual(notes, {("API-030", "temperature"),
                                 ("API-030", "top_p")})
        message = answer["choices"][0]["message"]
        self.assertIn("80", message["content"])
        self.assertTrue(message["reasoning_content"])
        # The same as a stream.
        events = list(server.events(CHAT, body))
        self.assertEqual(joined(events, "reasoning_content"),
                         message["reasoning_content"])
        self.assertEqual(joined(events), message["content"])
        self.assertIn("belay_notes", json.loads(events[0]))
        self.assertNotIn("belay_notes", json.loads(events[1]))

    def test_all_ways_to_ask_for_thinking(self):
        for wish in ({"thinking": {"type": "enabled"}},
                     {"chat_template_kwargs": {"thinking": True}},
                     {"chat_template_kwargs": {"enable_thinking": True}},
                     {"enable_thinking": True},
                     {"reasoning_effort": "high"},
                     {"reasoning_effort": "low"}):
            message = server.chat("What is 2 + 3?", top_k=1, **wish)
            self.assertIn("reasoning_content",
                          message["choices"][0]["message"], wish)
        for wish in ({}, {"thinking": {"type": "disabled"}},
                     {"reasoning_effort": "none"},
                     {"reasoning_effort": "high",
                      "chat_template_kwargs": {"thinking": False}}):
            message = server.chat("What is 2 + 3?", top_k=1, **wish)
            self.assertNotIn("reasoning_content",
                             message["choices"][0]["message"], wish)

    def test_stop_strings_across_tokens(self):
        for stop, text in (("tiny DeepSeek", "Hello! I am a "),
                           (["zzz", "model. Ask"],
                            "Hello! I am a tiny DeepSeek-V4 "),
                           (["Hello"], "")):
            answer = server.chat("Hello!", stop=stop)
            choice = answer["choices"][0]
            self.assertEqual(choice["message"]["content"], text)
            self.assertEqual(choice["finish_reason"], "stop")
            events = server.events(CHAT, {
                "messages": [{"role": "user", "content": "Hello!"}],
                "temperature": 0, "stop": stop})
            self.assertEqual(joined(events), text)

    def test_several_choices_and_seeds(self):
        ask = {"temperature": 2, "n": 3, "seed": 5, "max_tokens": 8}
        first = server.chat("Hello!", **ask)["choices"]
        again = server.chat("Hello!", **ask)["choices"]
        self.assertEqual([c["index"] for c in first], [0, 1, 2])
        self.assertEqual([c["message"] for c in first],
                         [c["message"] for c in again])
        self.assertGreater(len({c["message"]["content"] for c in first}), 1)
        events = [json.loads(e) for e in server.events(CHAT, {
            "messages": [{"role": "user", "content": "Hello!"}], **ask})
            if e != "[DONE]"]
        texts = ["", "", ""]
        for event in events:
            for choice in event["choices"]:
                texts[choice["index"]] += choice["delta"].get("content") or ""
        self.assertEqual(texts, [c["message"]["content"] for c in first])

    def test_log_probabilities(self):
        answer = server.chat("Hello!", logprobs=True, top_logprobs=3)
        content = answer["choices"][0]["logprobs"]["content"]
        text = b"".join(bytes(t["bytes"]) for t in content)
        self.assertEqual(text.decode(), HELLO)
        for token in content:
            self.assertEqual(len(token["top_logprobs"]), 3)
            tops = [t["logprob"] for t in token["top_logprobs"]]
            self.assertEqual(tops, sorted(tops, reverse=True))
            self.assertLessEqual(max(tops), 0)
            # Greedy: the likeliest is the one that was taken.
            self.assertEqual(token["token"], token["top_logprobs"][0]["token"])
            self.assertAlmostEqual(token["logprob"], tops[0], places=5)
        # A stop string's own tokens are no part of the answer.
        answer = server.chat("Hello!", logprobs=True, stop=" DeepSeek")
        content = answer["choices"][0]["logprobs"]["content"]
        text = b"".join(bytes(t["bytes"]) for t in content).decode()
        self.assertEqual(text, "Hello! I am a tiny")
        streamed = []
        for event in server.events(CHAT, {
                "messages": [{"role": "user", "content": "Hello!"}],
                "temperature": 0, "logprobs": True}):
            if event != "[DONE]":
                for choice in json.loads(event)["choices"]:
                    streamed += (choice["logprobs"] or {}).get("content", [])
        self.assertEqual(b"".join(bytes(t["bytes"]) for t in streamed).decode(),
                         HELLO)

    def test_bias_and_penalties_change_the_answer(self):
        first = server.post("/v1/tokenize", {"text": "Hello"})["tokens"][0]
        answer = server.chat("Hello!", logit_bias={str(first): -100},
                             max_tokens=4)
        self.assertFalse(
            answer["choices"][0]["message"]["content"].startswith("Hell"))
        plain = server.chat("Count from 1 to 9.", max_tokens=40)
        heavy = server.chat("Count from 1 to 9.", max_tokens=40,
                            frequency_penalty=2, presence_penalty=2,
                            repetition_penalty=3)
        self.assertNotEqual(plain["choices"], heavy["choices"])

    def test_limits_end_with_length(self):
        for name in ("max_tokens", "max_completion_tokens"):
            answer = server.chat("Hello!", **{name: 3})
            self.assertEqual(answer["choices"][0]["finish_reason"], "length")
            self.assertEqual(answer["usage"]["completion_tokens"], 3)

    def test_tools(self):
        with open(os.path.join(ROOT, "examples/tool_call.json"),
                  encoding="utf-8") as f:
            messages = json.load(f)
        tools = messages[0].pop("tools")
        answer = server.chat(messages, tools=tools)
        choice = answer["choices"][0]
        self.assertEqual(choice["finish_reason"], "tool_calls")
        call = choice["message"]["tool_calls"][0]
        self.assertEqual(call["function"]["name"], "get_device_health")
        self.assertEqual(json.loads(call["function"]["arguments"]),
                         {"device": 3})
        # Streamed: the same call, named first, then its arguments in pieces.
        calls = []
        for event in server.events(CHAT, {"messages": messages, "tools": tools,
                                          "temperature": 0}):
            if event != "[DONE]":
                delta = json.loads(event)["choices"][0]["delta"]
                calls += delta.get("tool_calls", [])
        self.assertEqual({c["index"] for c in calls}, {0})
        self.assertEqual((calls[0]["type"], calls[0]["function"]),
                         ("function", {"name": "get_device_health",
                                       "arguments": ""}))
        self.assertTrue(calls[0]["id"])
        self.assertGreater(len(calls), 2)
        for piece in calls[1:]:
            self.assertEqual(set(piece), {"index", "function"})
            self.assertEqual(set(piece["function"]), {"arguments"})
        self.assertEqual(
            "".join(c["function"]["arguments"] for c in calls),
            call["function"]["arguments"])
        # The answer to the result.
        messages = messages + [choice["message"], {
            "role": "tool", "tool_call_id": call["id"],
            "content": json.dumps({"device": 3, "health": "OK"})}]
        answer = server.chat(messages, tools=tools)
        self.assertTrue(answer["choices"][0]["message"]["content"])
        # Without leave to call there is no call.
        answer = server.chat(messages[:2], tools=tools, tool_choice="none")
        self.assertNotIn("tool_calls", answer["choices"][0]["message"])

    def test_a_streamed_call_that_the_limit_cuts(self):
        with open(os.path.join(ROOT, "examples/tool_call.json"),
                  encoding="utf-8") as f:
            messages = json.load(f)
        tools = messages[0].pop("tools")
        body = {"messages": messages, "tools": tools, "temperature": 0}
        n_whole = server.post(CHAT, body)["usage"]["completion_tokens"]
        seen = set()
        for limit in range(n_whole - 14, n_whole):
            calls, content, finish = [], "", None
            for event in server.events(CHAT, body | {"max_tokens": limit}):
                if event == "[DONE]":
                    break
                choice = json.loads(event)["choices"][0]
                calls += choice["delta"].get("tool_calls", [])
                content += choice["delta"].get("content") or ""
                finish = choice["finish_reason"] or finish
            self.assertEqual(finish, "length")
            # What was sent as a call is not sent again as text.
            if calls:
                self.assertNotIn("parameter", content)
            seen.add(bool(calls))
        self.assertIn(True, seen)

    def test_prefixes_are_counted(self):
        content = "Tell me about error 507034. " * 30
        server.chat(content, max_tokens=1)
        usage = server.chat(content, max_tokens=1)["usage"]
        cached = usage["prompt_tokens_details"]["cached_tokens"]
        self.assertEqual(cached % 128, 0)
        self.assertGreater(cached, 0)
        self.assertEqual(usage["prompt_cache_miss_tokens"],
                         usage["prompt_tokens"] - cached)
        # Another tenant's prefix is not taken.
        usage = server.chat(content, max_tokens=1, cache_salt="x")["usage"]
        self.assertEqual(usage["prompt_tokens_details"]["cached_tokens"], 0)


class OtherPathsTest(unittest.TestCase):
    def test_plain_completions(self):
        ids = samples()[0]["prompt_ids"]
        text = samples()[0]["prompt_text"]
        for prompt in (text, ids):
            answer = server.post("/v1/completions", {
                "prompt": prompt, "temperature": 0, "max_tokens": 64})
            self.assertEqual(answer["choices"][0]["text"], HELLO)
            self.assertEqual(answer["choices"][0]["finish_reason"], "stop")
        answer = server.post("/v1/completions", {
            "prompt": [text, ids], "temperature": 0, "n": 2, "echo": True,
            "max_tokens": 64})
        self.assertEqual([c["text"] for c in answer["choices"]],
                         [text + HELLO] * 4)
        self.assertEqual(answer["usage"]["prompt_tokens"], 2 * len(ids))
        answer = server.post("/v1/completions", {
            "prompt": text, "temperature": 0, "logprobs": 2, "max_tokens": 3})
        logprobs = answer["choices"][0]["logprobs"]
        self.assertEqual(len(logprobs["tokens"]), 3)
        self.assertEqual(len(logprobs["top_logprobs"][0]), 2)
        self.assertEqual(logprobs["text_offset"][0], 0)
        texts = [json.loads(e)["choices"][0]["text"] for e in server.events(
            "/v1/completions", {"prompt": text, "temperature": 0,
                                "max_tokens": 64}) if e != "[DONE]"]
        self.assertEqual("".join(texts), HELLO)

    def test_infer_as_the_article_has_it(self):
        answer = server.post("/infer", {"text": "Hello!"})
        self.assertEqual(answer["text"], HELLO)
        self.assertEqual(answer["tokens"], 26)
        self.assertGreater(answer["ttft_ms"], 0)
        self.assertGreaterEqual(answer["latency_ms"], answer["ttft_ms"])
        answer = server.post("/infer", {"text": "Hello!", "max_tokens": 2,
                                        "temperature": 0.5})
        self.assertEqual(answer["tokens"], 2)

    def test_tokens_there_and_back(self):
        text = "Hello, 昇腾 507034!"
        tokens = server.post("/v1/tokenize", {"prompt": text})
        self.assertEqual(tokens["count"], len(tokens["tokens"]))
        back = server.post("/v1/detokenize", {"tokens": tokens["tokens"]})
        self.assertEqual(back["text"], text)
        sample = samples()[0]
        chat = server.post("/v1/tokenize", {"messages": sample["messages"]})
        self.assertEqual(chat["tokens"], sample["prompt_ids"])

    def test_state(self):
        status, _, body = server.request("GET", "/health")
        self.assertEqual((status, json.loads(body)), (200, {"status": "ok"}))
        _, _, body = server.request("GET", "/ready")
        ready = json.loads(body)
        self.assertEqual((ready["ready"], ready["percent"]), (True, 100))
        self.assertEqual([c["result"] for c in ready["canary"]],
                         ["passed"] * 5, ready)
        _, _, body = server.request("GET", "/v1/models")
        self.assertEqual([m["id"] for m in json.loads(body)["data"]], ["demo"])
        self.assertEqual(server.request("GET", "/v1/models/demo")[0], 200)
        self.assertEqual(server.request("GET", "/v1/models/other")[0], 404)
        self.assertEqual(server.request("GET", "/")[0], 200)
        server.chat("Hello!")
        metrics = server.metrics()
        self.assertEqual(metrics["belay_ready"], 1)
        for name in ("belay_ttft_seconds_count", "belay_tpot_seconds_count",
                     "belay_e2e_seconds_count", "belay_completion_tokens_total",
                     'belay_cache_pages{state="free"}',
                     'belay_memory_bytes{kind="weights"}',
                     "process_resident_memory_bytes"):
            self.assertGreater(metrics[name], 0, name)

    def test_foreign_pages_are_kept_out(self):
        origin = {"Origin": "http://evil.example"}
        status, headers, body = server.request("GET", "/v1/models",
                                               headers=origin)
        self.assertEqual(status, 403)
        self.assertEqual(json.loads(body)["error"]["code"], "API-006")
        self.assertNotIn("Access-Control-Allow-Origin", headers)
        own = {"Origin": f"http://127.0.0.1:{server.port}"}
        self.assertEqual(server.request("GET", "/v1/models",
                                        headers=own)[0], 200)

    def test_errors_in_openai_form(self):
        for method, path, body, status, code in (
                ("POST", CHAT, "{", 400, "CHAT-001"),
                ("POST", CHAT, "[]", 400, "API-002"),
                ("POST", CHAT, '{"messages": []}', 400, "API-002"),
                ("POST", CHAT, "[" * 100000, 400, "CHAT-001"),
                ("GET", CHAT, None, 405, "API-004"),
                ("GET", "/v2", None, 404, "API-003"),
                ("POST", "/v1/completions",
                 '{"prompt": [999999]}', 400, "ARG-003"),
                ("POST", "/v1/completions",
                 json.dumps({"prompt": [5] * 2000}), 400, "ENG-001"),
                ("POST", CHAT, '{"model": "gpt-4", "messages": [{"role": '
                 '"user", "content": "x"}]}', 404, "API-011")):
            got, _, text = server.request(method, path, body)
            error = json.loads(text)["error"]
            self.assertEqual((got, error["code"]), (status, code), text)
            self.assertEqual(set(error), {"message", "type", "param", "code"})
            self.assertIn("error", error["type"])
        status, _, text = server.request(
            "POST", CHAT, "{", {"Accept-Language": "zh-CN"})
        self.assertRegex(json.loads(text)["error"]["message"], "[一-龥]")

    def test_deadlines(self):
        status, _, body = server.request(
            "POST", CHAT, {"messages": [{"role": "user", "content": "Hello!"}],
                           "ignore_eos": True},
            {"X-Request-Timeout": "0.01"})
        self.assertEqual((status, json.loads(body)["error"]["code"]),
                         (504, "API-014"))


if __name__ == "__main__":
    unittest.main(verbosity=1)
