// SPDX-License-Identifier: Apache-2.0
// One turn of the conversation on the page.

import {prose} from './prose.js';
import {seconds} from './figures.js';
import {t} from './words.js';

function make(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

// A text that follows the language of the page.
function say(node, key) {
  node.dataset.i18n = key;
  node.textContent = t(key);
}

function quiet(key, action) {
  const button = make('button', 'quiet');
  say(button, key);
  button.type = 'button';
  button.addEventListener('click', action);
  return button;
}

export function userTurn(text, role = 'user') {
  const turn = make('article', `turn ${role}`);
  const who = make('h3', 'hidden');
  say(who, role === 'user' ? 'you' : 'result');
  turn.append(who, make('div', 'text', text));
  return turn;
}

function pretty(json) {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;  // still coming, or cut
  }
}

// An answer while it comes and after.
export class AnswerTurn {
  constructor({onAgain, onResult}) {
    this.onAgain = onAgain;
    this.onResult = onResult;
    this.content = '';
    this.reasoning = '';
    this.calls = [];
    this.began = performance.now();
    this.firstAt = null;
    this.node = make('article', 'turn assistant streaming');
    this.node.setAttribute('aria-busy', 'true');
    this.text = make('div', 'text');
    const who = make('h3', 'hidden');
    say(who, 'belay');
    this.node.append(who, this.text);
    this.frame = 0;
  }

  touch() {
    this.firstAt ??= performance.now();
    // Once a frame, however fast the pieces come.
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  addReasoning(text) {
    this.reasoning += text;
    this.touch();
  }

  addContent(text) {
    this.content += text;
    this.touch();
  }

  addCall(index, piece) {
    const call = this.calls[index] ??= {id: '', name: '', arguments: ''};
    call.id = piece.id ?? call.id;
    call.name += piece.function?.name ?? '';
    call.arguments += piece.function?.arguments ?? '';
    this.touch();
  }

  drawReasoning() {
    if (!this.reasoning) return;
    if (!this.details) {
      this.details = make('details', 'reasoning');
      this.summary = make('summary');
      say(this.summary, 'thinkingNow');
      this.thought = make('div', 'thought');
      this.details.append(this.summary, this.thought);
      this.text.before(this.details);
    }
    this.thought.textContent = this.reasoning;
    if (this.content || this.calls.length) {
      say(this.summary, 'reasoning');
    }
  }

  draw() {
    this.drawReasoning();
    prose(this.content, this.text);
    this.calls.forEach((call, i) => {
      let card = this.node.querySelectorAll('.call')[i];
      if (!card) {
        card = make('section', 'call');
        const title = make('h4');
        const word = make('span');
        say(word, 'call');
        title.append(word, ' ', make('code'));
        const code = make('pre');
        code.tabIndex = 0;
        card.append(title, code);
        this.node.append(card);
      }
      card.querySelector('h4 code').textContent = call.name;
      card.querySelector('pre').textContent = pretty(call.arguments);
    });
    this.onDraw?.();
  }

  // The message as the API wants it back.
  message() {
    const message = {role: 'assistant', content: this.content};
    if (this.reasoning) message.reasoning_content = this.reasoning;
    if (this.calls.length) {
      message.tool_calls = this.calls.map((call) => ({
        id: call.id,
        type: 'function',
        function: {name: call.name, arguments: call.arguments},
      }));
    }
    return message;
  }

  addResultForms() {
    this.node.querySelectorAll('.call').forEach((card, i) => {
      const form = make('form');
      const input = make('input');
      input.setAttribute('aria-label', `${t('result')}: ${this.calls[i].name}`);
      input.placeholder = t('result');
      const send = make('button', 'quiet', t('giveResult'));
      form.append(input, send);
      form.addEventListener('submit', (event) => {
        event.preventDefault();
        form.remove();
        this.onResult(this.calls[i], input.value);
      });
      card.append(form);
    });
  }

  // `end`: {finish, usage} or {stopped: true} or {error}.
  finish(end) {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.draw();
    if (this.summary) say(this.summary, 'reasoning');
    this.node.classList.remove('streaming');
    this.node.removeAttribute('aria-busy');
    if (end.stopped) this.note('stopped');
    if (end.finish === 'length') this.note('cut');
    if (end.error) {
      const box = make('div', 'error');
      box.setAttribute('role', 'alert');
      if (end.error.id) box.append(make('b', '', `${end.error.id} `));
      box.append(end.error.status === 401 ? t('needKey') : end.error.message);
      this.node.append(box);
    }
    if (this.calls.length && end.finish === 'tool_calls') this.addResultForms();
    this.node.append(this.foot(end));
  }

  note(key) {
    const note = make('p', 'stopped');
    say(note, key);
    this.text.append(note);
  }

  foot(end) {
    const foot = make('div', 'foot');
    if (this.content) {
      const copy = quiet('copy', async () => {
        await navigator.clipboard?.writeText(this.content);
        say(copy, 'copied');
        setTimeout(() => say(copy, 'copy'), 1500);
      });
      foot.append(copy);
    }
    const again = quiet('again', () => this.onAgain());
    again.classList.add('again');
    foot.append(again);
    const figures = make('span', 'figures', this.figures(end));
    foot.append(figures);
    return foot;
  }

  figures({usage}) {
    const parts = [];
    if (this.firstAt) {
      parts.push(`${t('first')} ${seconds((this.firstAt - this.began) / 1000)}`);
    }
    const n = usage?.completion_tokens;
    if (n) {
      const span = (performance.now() - this.firstAt) / 1000;
      parts.push(`${n} ${t('tokens')}`);
      if (n > 1 && span > 0) {
        parts.push(`${((n - 1) / span).toFixed(1)} ${t('perSecond')}`);
      }
      const cached = usage.prompt_tokens_details?.cached_tokens;
      if (cached) parts.push(`${cached} ${t('fromCache')}`);
    }
    return parts.join(' · ');
  }
}
