// SPDX-License-Identifier: Apache-2.0
// Prometheus text to numbers, and percentiles out of histograms.

// Samples by name: [{labels, value}].
export function parseMetrics(text) {
  const families = new Map();
  for (const line of text.split('\n')) {
    if (!line || line.startsWith('#')) continue;
    const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)/.exec(line);
    if (!match) continue;
    const labels = {};
    for (const [, name, value] of (match[2] ?? '').matchAll(/(\w+)="([^"]*)"/g)) {
      labels[name] = value;
    }
    const value = match[3] === '+Inf' ? Infinity : Number(match[3]);
    if (!families.has(match[1])) families.set(match[1], []);
    families.get(match[1]).push({labels, value});
  }
  return families;
}

export function value(families, name, labels = {}) {
  const samples = families.get(name) ?? [];
  const found = samples.find(
      (s) => Object.entries(labels).every(([k, v]) => s.labels[k] === v));
  return found ? found.value : null;
}

// Cumulative counts by upper bound, those of `before` taken away.
export function buckets(now, before, name) {
  const old = new Map((before?.get(`${name}_bucket`) ?? [])
                          .map((s) => [s.labels.le, s.value]));
  return (now.get(`${name}_bucket`) ?? []).map((s) => ({
    bound: s.labels.le === '+Inf' ? Infinity : Number(s.labels.le),
    count: s.value - (old.get(s.labels.le) ?? 0),
  }));
}

// The value below which `share` of what was observed lies, linear inside a
// bucket as Prometheus does; null without observations.
export function quantile(cumulative, share) {
  const n = cumulative.at(-1)?.count ?? 0;
  if (!(n > 0)) return null;
  const rank = share * n;
  let low = 0;
  let below = 0;
  for (const {bound, count} of cumulative) {
    if (count >= rank) {
      if (bound === Infinity) return low;
      const inside = count - below;
      return inside > 0 ? low + (bound - low) * (rank - below) / inside : bound;
    }
    low = bound;
    below = count;
  }
  return low;
}

export function seconds(s) {
  if (s === null) return '–';
  const ms = 1000 * s;
  if (ms < 9.95) return `${ms.toFixed(1)} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  return `${s < 9.95 ? s.toFixed(1) : Math.round(s)} s`;
}

export function bytes(n) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let i = 0;
  while (n >= 1024 && i < units.length - 1) {
    n /= 1024;
    ++i;
  }
  return `${i === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)} ${units[i]}`;
}
