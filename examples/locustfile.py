# SPDX-License-Identifier: Apache-2.0
"""Drives POST /infer with locust.

    pip install locust
    locust -f examples/locustfile.py --host http://127.0.0.1:8000 \
        --headless -u 16 -r 4 -t 60s

The figures of locust end where the answer begins to be read: TTFT, time per
token and whether the text is sound are what `belay loadtest` measures.
"""
from locust import HttpUser, between, task

PROMPTS = ("Hello world", "What is error 507034?", "Name five prime numbers.")


class DeepSeekUser(HttpUser):
    wait_time = between(0.1, 0.5)

    @task
    def infer(self):
        prompt = PROMPTS[self.environment.runner.user_count % len(PROMPTS)]
        with self.client.post(
            "/infer", json={"text": prompt, "max_tokens": 32}, catch_response=True
        ) as response:
            if response.status_code != 200:
                response.failure(f"HTTP {response.status_code}: {response.text[:200]}")
                return
            answer = response.json()
            if not answer.get("text") or answer.get("tokens", 0) < 1:
                response.failure("an answer without text")
