// SPDX-License-Identifier: Apache-2.0
// The page: a conversation on the left, what the server does on the right.

import {namePanel, startPanel} from './panel.js';
import {ApiError, chat, get, setKey} from './stream.js';
import {AnswerTurn, userTurn} from './turns.js';
import {language, speak, store, t} from './words.js';

const $ = (id) => document.getElementById(id);
const messages = [];
let model = '';
let running = null;  // AbortController of the answer that comes

function atEnd() {
  const log = $('log');
  return log.scrollHeight - log.scrollTop - log.clientHeight < 80;
}

function toEnd() {
  $('log').scrollTop = $('log').scrollHeight;
}

function setRunning(controller) {
  running = controller;
  const hadFocus = document.activeElement === $('send') ||
      document.activeElement === $('stop');
  $('send').hidden = Boolean(controller);
  $('stop').hidden = !controller;
  if (hadFocus) (controller ? $('stop') : $('prompt')).focus();
}

function tools() {
  const text = $('tools').value.trim();
  if (!text) return undefined;
  const list = JSON.parse(text);
  if (!Array.isArray(list)) throw new Error('not a list');
  return list.length ? list : undefined;
}

function body() {
  const system = $('system').value.trim();
  const request = {
    model,
    messages: system ? [{role: 'system', content: system}, ...messages] : [...messages],
    max_tokens: Math.max(1, Number($('max-tokens').value) || 1024),
    temperature: Math.max(0, Number($('temperature').value) || 0),
    thinking: {type: $('thinking').checked ? 'enabled' : 'disabled'},
  };
  const list = tools();
  if (list) request.tools = list;
  return request;
}

async function answer() {
  for (const button of document.querySelectorAll('.again')) button.remove();
  const turn = new AnswerTurn({
    onAgain: () => {
      if (running) return;
      turn.node.remove();
      if (messages.at(-1)?.role === 'assistant') messages.pop();
      answer();
    },
    onResult: (call, text) => {
      messages.push({role: 'tool', tool_call_id: call.id, content: text});
      $('log').append(userTurn(text, 'tool'));
      const n = turn.calls.length;
      turn.results = (turn.results ?? 0) + 1;
      if (turn.results === n) answer();
    },
  });
  let follow = true;
  turn.onDraw = () => {
    if (follow) toEnd();
    follow = atEnd();
  };
  $('log').append(turn.node);
  toEnd();
  $('announce').textContent = t('answering');
  const controller = new AbortController();
  setRunning(controller);
  let end;
  try {
    end = await chat(body(), {
      reasoning: (text) => turn.addReasoning(text),
      content: (text) => turn.addContent(text),
      call: (index, piece) => turn.addCall(index, piece),
    }, controller.signal);
  } catch (error) {
    if (controller.signal.aborted) {
      end = {stopped: true};
    } else if (error instanceof ApiError) {
      end = {error};
    } else {
      const text = error instanceof SyntaxError ? t('badTools') : t('unreachable');
      end = {error: {id: '', message: text}};
    }
  }
  turn.finish(end);
  const said = turn.content || turn.calls.length;
  if (said && !end.error) messages.push(turn.message());
  $('announce').textContent = end.stopped ? t('stopped') : t('finished');
  setRunning(null);
  if (atEnd() || follow) toEnd();
}

function send(text) {
  if (running || !text.trim()) return;
  $('welcome').hidden = true;
  messages.push({role: 'user', content: text});
  $('log').append(userTurn(text));
  $('prompt').value = '';
  resize();
  answer();
}

function resize() {
  const box = $('prompt');
  box.style.height = 'auto';
  box.style.height = `${box.scrollHeight}px`;
}

function newChat() {
  running?.abort();
  messages.length = 0;
  for (const turn of document.querySelectorAll('.turn')) turn.remove();
  $('welcome').hidden = false;
  $('prompt').focus();
}

function drawStarters() {
  $('starters').replaceChildren(...t('starters').map((text) => {
    const item = document.createElement('li');
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = text;
    button.addEventListener('click', () => send(text));
    item.append(button);
    return item;
  }));
}

function setLanguage(code) {
  speak(code);
  store('lang', code);
  const other = code === 'zh' ? ['en', 'English'] : ['zh', '中文'];
  $('lang').lang = other[0];
  $('lang').textContent = other[1];
  drawStarters();
  namePanel();
}

function isDark() {
  const set = document.documentElement.dataset.theme;
  return set ? set === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}

function setBanner(text, bad = false) {
  $('banner').hidden = !text;
  $('banner').classList.toggle('bad', bad);
  if ($('banner').textContent !== text) $('banner').textContent = text;
}

// Asks until the model is there, then for its name.
async function watchReadiness() {
  let state = 'bad';
  try {
    const ready = await get('ready');
    if (ready.ok) {
      state = 'ready';
      setBanner('');
      const list = await get('v1/models');
      if (list.status === 401) setBanner(t('needKey'));
      if (list.ok) model = (await list.json()).data?.[0]?.id ?? model;
      $('model').textContent = model || 'DeepSeek-V4';
    } else {
      state = 'busy';
      const said = await ready.json().catch(() => ({}));
      const failed = (said.status ?? said.stage) === 'failed';
      setBanner(failed ? t('failed') : t('notReady'), failed);
    }
  } catch {
    setBanner(t('unreachable'), true);
  }
  $('dot').className = `dot ${state}`;
  setTimeout(watchReadiness, state === 'ready' ? 10000 : 1000);
}

function listen() {
  $('composer').addEventListener('submit', (event) => {
    event.preventDefault();
    send($('prompt').value);
  });
  $('prompt').addEventListener('keydown', (event) => {
    // Enter inside an input method picks a word.
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      send($('prompt').value);
    }
  });
  $('prompt').addEventListener('input', resize);
  $('stop').addEventListener('click', () => running?.abort());
  $('new-chat').addEventListener('click', newChat);
  $('lang').addEventListener('click', () => setLanguage(language() === 'zh' ? 'en' : 'zh'));
  $('theme').addEventListener('click', () => {
    const theme = isDark() ? 'light' : 'dark';
    document.documentElement.dataset.theme = theme;
    store('theme', theme);
  });
  $('toggle-panel').addEventListener('click', () => {
    const open = $('panel').classList.toggle('open');
    $('toggle-panel').setAttribute('aria-expanded', String(open));
    const height = document.querySelector('.bar').offsetHeight;
    $('panel').style.setProperty('--bar-height', `${height}px`);
  });
  $('api-key').addEventListener('input', () => setKey($('api-key').value));
  document.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape') return;
    if ($('settings').open) {
      $('settings').open = false;
      $('settings').querySelector('summary').focus();
    } else if ($('panel').classList.contains('open')) {
      $('toggle-panel').click();
      $('toggle-panel').focus();
    } else {
      running?.abort();
    }
  });
  document.addEventListener('click', (event) => {
    if ($('settings').open && !$('settings').contains(event.target)) {
      $('settings').open = false;
    }
  });
}

setLanguage(store('lang') ?? (navigator.language.startsWith('zh') ? 'zh' : 'en'));
listen();
startPanel();
watchReadiness();
$('prompt').focus();
