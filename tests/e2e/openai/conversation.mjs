// SPDX-License-Identifier: Apache-2.0
// OpenAI's own client talks to `belay serve` on the demo checkpoint: streaming,
// tools, JSON schema, log probabilities, errors, cancellation, 32 at once.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import OpenAI from 'openai';

const HELLO = 'Hello! I am a tiny DeepSeek-V4 model. Ask me about Ascend NPUs.';
const model = 'demo';
const hello = [{ role: 'user', content: 'Hello!' }];

function startServer(program) {
  const server = spawn(program, [
    'serve', '--model', 'data/demo', '--port', '0', '--max-batch', '16',
    '--max-context', '2048'],
    { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, LC_ALL: 'C' } });
  const port = new Promise((resolve, reject) => {
    let text = '';
    server.stderr.on('data', (data) => {
      text += data;
      const match = text.match(/http:\/\/127\.0\.0\.1:(\d+)/);
      if (match && /^ready$/m.test(text)) resolve(Number(match[1]));
    });
    server.on('exit', (code) => reject(new Error(`exit ${code}: ${text}`)));
  });
  return { server, port };
}

const tests = {
  async 'lists the model'({ client }) {
    const models = [];
    for await (const one of client.models.list()) models.push(one.id);
    assert.deepEqual(models, [model]);
    assert.equal((await client.models.retrieve(model)).id, model);
  },

  async 'whole answers'({ client }) {
    const answer = await client.chat.completions.create({
      model, messages: hello, temperature: 0 });
    assert.equal(answer.object, 'chat.completion');
    assert.equal(answer.choices[0].message.content, HELLO);
    assert.equal(answer.choices[0].finish_reason, 'stop');
    assert.equal(answer.usage.total_tokens,
      answer.usage.prompt_tokens + answer.usage.completion_tokens);
  },

  async 'streams'({ client }) {
    const stream = await client.chat.completions.create({
      model, messages: hello, temperature: 0, stream: true,
      stream_options: { include_usage: true } });
    let text = '';
    let usage = null;
    let chunks = 0;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta?.content ?? '';
      usage = chunk.usage ?? usage;
      ++chunks;
    }
    assert.equal(text, HELLO);
    assert.equal(usage.completion_tokens, 26);
    assert.ok(chunks > 15);
  },

  // The helper checks that the chunks are a well-formed answer together.
  async 'streams by the helper'({ client }) {
    const stream = client.chat.completions.stream({
      model, messages: hello, temperature: 0 });
    const completion = await stream.finalChatCompletion();
    assert.equal(completion.choices[0].message.content, HELLO);
  },

  async 'reasons'({ client }) {
    const answer = await client.chat.completions.create({
      model, messages: [{ role: 'user', content: 'What is 43 + 37?' }],
      reasoning_effort: 'high', top_k: 1, temperature: 0.3 });
    const { message } = answer.choices[0];
    assert.ok(message.reasoning_content.length > 0);
    assert.match(message.content, /80/);
    assert.ok(answer.usage.completion_tokens_details.reasoning_tokens > 0);
    assert.equal(answer.belay_notes[0].code, 'API-030');
  },

  async 'calls tools, streamed, and takes their results'({ client }) {
    const messages = JSON.parse(readFileSync('examples/tool_call.json'));
    const { tools } = messages[0];
    delete messages[0].tools;
    const stream = client.chat.completions.stream({
      model, messages, tools, temperature: 0 });
    let pieces = 0;
    stream.on('tool_calls.function.arguments.delta', () => ++pieces);
    const first = await stream.finalChatCompletion();
    assert.equal(first.choices[0].finish_reason, 'tool_calls');
    const call = first.choices[0].message.tool_calls[0];
    assert.equal(call.function.name, 'get_device_health');
    assert.ok(pieces > 1, 'the arguments come in pieces');
    assert.deepEqual(JSON.parse(call.function.arguments), { device: 3 });
    messages.push(first.choices[0].message, {
      role: 'tool', tool_call_id: call.id, content: '{"health": "OK"}' });
    const second = await client.chat.completions.create({
      model, messages, tools, temperature: 0 });
    assert.ok(second.choices[0].message.content.length > 0);
  },

  // The client parses the answer by its schema and throws when it does not fit:
  // the demo model was never trained on it, so what fits is held to it.
  async 'JSON schema, whole and streamed'({ client }) {
    const schema = {
      type: 'object',
      properties: {
        name: { type: 'string', minLength: 1, maxLength: 12 },
        age: { type: 'integer', minimum: 18, maximum: 99 },
        kind: { enum: ['climber', 'belayer', null] },
        tags: { type: 'array', items: { type: 'string', pattern: '^[a-z]{2,6}$' },
          minItems: 1, maxItems: 3 },
      },
      required: ['name', 'age', 'kind', 'tags'],
      additionalProperties: false,
    };
    const body = { model, messages: hello, temperature: 1, seed: 4,
      max_tokens: 300, response_format: { type: 'json_schema',
        json_schema: { name: 'person', strict: true, schema } } };
    const check = (person) => {
      assert.deepEqual(Object.keys(person), schema.required);
      assert.ok(person.name.length >= 1 && [...person.name].length <= 12);
      assert.ok(Number.isInteger(person.age));
      assert.ok(person.age >= 18 && person.age <= 99);
      assert.ok(schema.properties.kind.enum.includes(person.kind));
      assert.ok(person.tags.length >= 1 && person.tags.length <= 3);
      person.tags.forEach((tag) => assert.match(tag, /^[a-z]{2,6}$/));
    };
    const whole = await client.chat.completions.parse(body);
    assert.equal(whole.choices[0].finish_reason, 'stop');
    check(whole.choices[0].message.parsed);
    const stream = client.chat.completions.stream(body);
    const streamed = await stream.finalChatCompletion();
    check(JSON.parse(streamed.choices[0].message.content));
    // The same seed: the same text either way.
    assert.equal(streamed.choices[0].message.content,
      whole.choices[0].message.content);
    const object = await client.chat.completions.create({ ...body,
      max_tokens: 200, response_format: { type: 'json_object' } });
    const { content } = object.choices[0].message;
    assert.ok(content.trimStart().startsWith('{'), content);
    if (object.choices[0].finish_reason === 'stop') JSON.parse(content);
    await assert.rejects(
      client.chat.completions.create({ ...body, response_format: {
        type: 'json_schema', json_schema: { name: 'n', schema: { not: {} } } } }),
      (e) => e instanceof OpenAI.BadRequestError && e.code === 'GRAM-002');
  },

  async 'a tool that must be called'({ client }) {
    const tools = [{ type: 'function', function: { name: 'set_rope',
      strict: true, parameters: { type: 'object', properties: {
        length_m: { type: 'integer', minimum: 10, maximum: 80 },
        colour: { type: 'string', enum: ['red', 'blue'] } },
      required: ['length_m', 'colour'], additionalProperties: false } } }];
    const answer = await client.chat.completions.create({
      model, messages: hello, tools, temperature: 0, max_tokens: 300,
      parallel_tool_calls: false,
      tool_choice: { type: 'function', function: { name: 'set_rope' } } });
    const [call] = answer.choices[0].message.tool_calls;
    assert.equal(call.function.name, 'set_rope');
    const { length_m: length, colour } = JSON.parse(call.function.arguments);
    assert.ok(length >= 10 && length <= 80);
    assert.ok(['red', 'blue'].includes(colour));
  },

  async 'log probabilities, streamed'({ client }) {
    const stream = await client.chat.completions.create({
      model, messages: hello, temperature: 0, stream: true, logprobs: true,
      top_logprobs: 1 });
    let text = '';
    for await (const chunk of stream) {
      for (const t of chunk.choices[0]?.logprobs?.content ?? []) {
        text += t.token;
        assert.ok(t.logprob <= 0 && t.top_logprobs.length === 1);
      }
    }
    assert.equal(text, HELLO);
  },

  async 'log probabilities'({ client }) {
    const answer = await client.chat.completions.create({
      model, messages: hello, temperature: 0, logprobs: true,
      top_logprobs: 2 });
    const { content } = answer.choices[0].logprobs;
    assert.equal(content.map((t) => t.token).join(''), HELLO);
    for (const token of content) {
      assert.ok(token.logprob <= 0);
      assert.equal(token.top_logprobs.length, 2);
    }
  },

  async 'plain completions'({ client }) {
    const stream = await client.completions.create({
      model, prompt: 'Hello', max_tokens: 4, temperature: 0, stream: true });
    let text = '';
    for await (const chunk of stream) text += chunk.choices[0].text;
    assert.ok(text.length > 0);
  },

  async 'errors have their classes'({ client, baseURL }) {
    await assert.rejects(
      client.chat.completions.create({ model, messages: [] }),
      (e) => e instanceof OpenAI.BadRequestError && e.code === 'API-002' &&
        e.param === 'messages' && e.type === 'invalid_request_error');
    await assert.rejects(
      client.chat.completions.create({ model: 'gpt-4', messages: hello }),
      (e) => e instanceof OpenAI.NotFoundError && e.code === 'API-011');
    await assert.rejects(
      client.chat.completions.create({ model, messages: hello,
        temperature: 9 }),
      (e) => e instanceof OpenAI.BadRequestError && e.param === 'temperature');
    const elsewhere = new OpenAI({ apiKey: 'x', baseURL: `${baseURL}/v1`,
      maxRetries: 0 });
    await assert.rejects(
      elsewhere.chat.completions.create({ model, messages: hello }),
      (e) => e instanceof OpenAI.NotFoundError && e.code === 'API-003');
  },

  async 'cancellation frees the slot'({ client, baseURL }) {
    const live = async () => {
      const text = await (await fetch(
        baseURL.replace('/v1', '/metrics'))).text();
      return Number(text.match(/^belay_requests_live (\d+)$/m)[1]);
    };
    const stream = await client.chat.completions.create({
      model, messages: hello, stream: true, max_tokens: 2000,
      ignore_eos: true });
    let chunks = 0;
    for await (const _ of stream) {
      if (++chunks === 5) break;  // aborts the request
    }
    for (let i = 0; i < 200 && await live() > 0; ++i) {
      await new Promise((done) => setTimeout(done, 20));
    }
    assert.equal(await live(), 0);
  },

  async '32 at once'({ client }) {
    const questions = ['Hello!', '你好', 'Who are you?', 'What is 43 + 37?'];
    const ask = async (i) => (await client.chat.completions.create({
      model, temperature: 0, max_tokens: 64,
      messages: [{ role: 'user', content: questions[i % 4] }],
    })).choices[0].message.content;
    const alone = [];
    for (let i = 0; i < 4; ++i) alone.push(await ask(i));
    const together = await Promise.all(
      Array.from({ length: 32 }, (_, i) => ask(i)));
    together.forEach((text, i) => assert.equal(text, alone[i % 4]));
  },
};

const { server, port } = startServer(process.argv[2]);
let failed = 0;
try {
  const baseURL = `http://127.0.0.1:${await port}/v1`;
  const client = new OpenAI({ apiKey: 'none', baseURL, maxRetries: 0 });
  for (const [name, test] of Object.entries(tests)) {
    const start = performance.now();
    try {
      await test({ client, baseURL });
      console.log(`ok      ${name} (${Math.round(performance.now() - start)} ms)`);
    } catch (error) {
      ++failed;
      console.log(`FAILED  ${name}\n${error.stack}`);
    }
  }
} finally {
  server.removeAllListeners('exit');
  const end = new Promise((done) => server.on('exit', done));
  server.kill('SIGTERM');
  const code = await end;
  if (code !== 0) {
    ++failed;
    console.log(`FAILED  the server ended with ${code}`);
  }
}
process.exit(failed ? 1 : 0);
