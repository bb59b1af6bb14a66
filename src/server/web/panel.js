// SPDX-License-Identifier: Apache-2.0
// The live panel, drawn from /metrics once a second while it can be seen.

import {buckets, bytes, parseMetrics, quantile, seconds, value} from './figures.js';
import {get} from './stream.js';
import {has, t} from './words.js';

const POINTS = 120;   // two minutes
const WINDOW = 60;    // of the latencies

const $ = (id) => document.getElementById(id);
const history = [];   // {at, families}
const speeds = [];

function show(id, text) {
  if ($(id).textContent !== text) $(id).textContent = text;
}

function drawSpark() {
  const top = Math.max(...speeds, 1);
  const points = speeds.map((v, i) => {
    const x = 120 - (speeds.length - 1 - i) * (120 / (POINTS - 1));
    return `${x.toFixed(1)},${(30 - v / top * 27).toFixed(1)}`;
  });
  const [area, line] = $('spark').children;
  if (points.length < 2) return;
  const first = points[0].split(',')[0];
  line.setAttribute('d', `M${points.join('L')}`);
  area.setAttribute('d', `M${first},32L${points.join('L')}L120,32Z`);
}

function drawSpeed(now, last) {
  if (!last) return;
  // Counted as they are made; belay_completion_tokens_total counts when answers
  // end.
  const key = 'belay_generated_tokens_total';
  const n = (value(now.families, key) ?? 0) - (value(last.families, key) ?? 0);
  const speed = Math.max(0, n / ((now.at - last.at) / 1000));
  speeds.push(speed);
  if (speeds.length > POINTS) speeds.shift();
  const recent = speeds.slice(-3);
  const mean = recent.reduce((a, b) => a + b, 0) / recent.length;
  show('speed', mean >= 100 ? String(Math.round(mean)) : mean.toFixed(1));
  drawSpark();
}

function drawLatency(now, before) {
  for (const [id, name] of [['ttft', 'belay_ttft_seconds'],
                            ['tpot', 'belay_tpot_seconds']]) {
    const counts = buckets(now, before, name);
    for (const p of [50, 90, 99]) {
      show(`${id}-${p}`, seconds(quantile(counts, p / 100)));
    }
  }
}

function drawCache(f) {
  const pages = {};
  for (const state of ['used', 'cached', 'free']) {
    pages[state] = value(f, 'belay_cache_pages', {state}) ?? 0;
    show(`pages-${state}`, String(pages[state]));
  }
  const all = Math.max(1, pages.used + pages.cached + pages.free);
  const [used, cached] = $('cache-bar').children;
  used.setAttribute('width', String(100 * pages.used / all));
  cached.setAttribute('x', String(100 * pages.used / all));
  cached.setAttribute('width', String(100 * pages.cached / all));
  const hits = value(f, 'belay_prefix_hits_total') ?? 0;
  const misses = value(f, 'belay_prefix_misses_total') ?? 0;
  show('prefix', hits + misses > 0 ?
      `${Math.round(100 * hits / (hits + misses))} %` : '–');
}

function drawMemory(f) {
  const rows = (f.get('belay_memory_bytes') ?? [])
                   .map((s) => [s.labels.kind, s.value]);
  const resident = value(f, 'process_resident_memory_bytes');
  if (resident) rows.push([t('resident'), resident]);
  const list = $('memory');
  while (list.children.length > rows.length) list.lastChild.remove();
  rows.forEach(([name, n], i) => {
    let row = list.children[i];
    if (!row) {
      row = document.createElement('div');
      row.append(document.createElement('dt'), document.createElement('dd'));
      list.append(row);
    }
    row.children[0].textContent =
        has(`mem_${name}`) ? t(`mem_${name}`) : name.replaceAll('_', ' ');
    row.children[1].textContent = bytes(n);
  });
  const guard = (f.get('belay_memory_guard') ?? [])
                    .find((s) => s.value === 1)?.labels.state ?? 'normal';
  $('guard').hidden = guard === 'normal';
  show('guard', guard === 'normal' ? '' : t(`guard_${guard}`));
}

function draw(now) {
  const f = now.families;
  show('running', String(value(f, 'belay_requests_running') ?? '–'));
  show('waiting', String(value(f, 'belay_requests_waiting') ?? '–'));
  const limit = value(f, 'belay_batch_limit');
  show('limit', limit === null ? '' : `${t('of')} ${limit}`);
  drawSpeed(now, history.at(-1));
  const before = history.findLast((h) => now.at - h.at >= WINDOW * 1000);
  drawLatency(f, before?.families);
  drawCache(f);
  drawMemory(f);
  const loaded = value(f, 'belay_load_progress') ?? 1;
  const ready = value(f, 'belay_ready') !== 0;
  $('load').hidden = ready;
  $('load-bar').value = loaded;
}

async function tick() {
  if (document.hidden || $('panel').offsetParent === null) return;
  try {
    const response = await get('metrics');
    if (!response.ok) {
      show('stale', response.status === 401 ? t('needKey') : t('noMetrics'));
      return;
    }
    const now = {at: performance.now(), families: parseMetrics(await response.text())};
    draw(now);
    history.push(now);
    while (now.at - history[0].at > (WINDOW + 5) * 1000) history.shift();
    show('stale', '');
  } catch {
    show('stale', t('stale'));
  }
}

// Names in the page's language.
export function namePanel() {
  $('ttft-name').title = t('ttft');
  $('tpot-name').title = t('tpot');
  $('spark').setAttribute('aria-label', t('sparkLabel'));
  $('cache-bar').setAttribute('aria-label', t('cacheLabel'));
}

export function startPanel() {
  namePanel();
  const again = async () => {
    await tick();
    setTimeout(again, 1000);
  };
  again();
}
