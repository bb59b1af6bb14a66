// SPDX-License-Identifier: Apache-2.0
// The API as the page uses it.

let key = '';
export function setKey(value) {
  key = value.trim();
}

function headers(more = {}) {
  return key ? {...more, Authorization: `Bearer ${key}`} : more;
}

export function get(path, options = {}) {
  return fetch(path, {cache: 'no-store', ...options, headers: headers()});
}

// An error as the server tells it: {id, message, status}.
export class ApiError extends Error {
  constructor(status, body) {
    super(body?.message ?? `HTTP ${status}`);
    this.status = status;
    this.id = body?.code ?? '';
    this.hint = body?.hint ?? '';
  }
}

// The data of each server-sent event of a response.
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = '';
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return;
    held += value;
    for (let end; (end = held.indexOf('\n\n')) >= 0;) {
      const lines = held.slice(0, end).split('\n');
      held = held.slice(end + 2);
      const data = lines.filter((line) => line.startsWith('data:'))
                       .map((line) => line.slice(5).trimStart());
      if (data.length) yield data.join('\n');
    }
  }
}

// One answer in pieces. Calls on.reasoning(text), on.content(text),
// on.call(index, {id, name, arguments}) and returns {finish, usage}.
export async function chat(body, on, signal) {
  const response = await fetch('v1/chat/completions', {
    method: 'POST',
    headers: headers({'Content-Type': 'application/json'}),
    body: JSON.stringify(
        {...body, stream: true, stream_options: {include_usage: true}}),
    signal,
  });
  if (!response.ok) {
    const answer = await response.json().catch(() => null);
    throw new ApiError(response.status, answer?.error);
  }
  let finish = null;
  let usage = null;
  let ended = false;
  for await (const data of events(response)) {
    if (data === '[DONE]') {
      ended = true;
      break;
    }
    const piece = JSON.parse(data);
    if (piece.error) throw new ApiError(response.status, piece.error);
    usage = piece.usage ?? usage;
    const choice = piece.choices?.[0];
    if (!choice) continue;
    finish = choice.finish_reason ?? finish;
    const delta = choice.delta ?? {};
    if (delta.reasoning_content) on.reasoning(delta.reasoning_content);
    if (delta.content) on.content(delta.content);
    for (const call of delta.tool_calls ?? []) on.call(call.index, call);
  }
  if (!ended && !finish) throw new ApiError(0, {message: 'the stream was cut'});
  return {finish, usage};
}
