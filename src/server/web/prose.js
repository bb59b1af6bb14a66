// SPDX-License-Identifier: Apache-2.0
// The little Markdown that models write, as DOM nodes. Text never becomes
// HTML, so nothing that a model says can become part of the page's code.

function inline(text, parent) {
  const pattern = /`([^`\n]+)`|\*\*([^*\n]+)\*\*|\*([^*\s][^*\n]*)\*/g;
  let last = 0;
  for (const match of text.matchAll(pattern)) {
    parent.append(text.slice(last, match.index));
    const tag = match[1] ? 'code' : match[2] ? 'strong' : 'em';
    const node = document.createElement(tag);
    node.textContent = match[1] ?? match[2] ?? match[3];
    parent.append(node);
    last = match.index + match[0].length;
  }
  parent.append(text.slice(last));
}

function list(lines, ordered) {
  const node = document.createElement(ordered ? 'ol' : 'ul');
  if (ordered) {
    const start = parseInt(lines[0], 10);
    if (start !== 1) node.start = start;
  }
  for (const line of lines) {
    const item = document.createElement('li');
    inline(line.replace(/^\s*([-*+]|\d+[.)])\s+/, ''), item);
    node.append(item);
  }
  return node;
}

function block(lines) {
  if (lines.every((line) => /^\s*[-*+]\s+/.test(line))) return list(lines, false);
  if (lines.every((line) => /^\s*\d+[.)]\s+/.test(line))) return list(lines, true);
  const heading = lines.length === 1 && /^(#{1,6})\s+(.*)/.exec(lines[0]);
  const node = document.createElement(
      heading ? (heading[1].length < 3 ? 'h3' : 'h4') : 'p');
  if (heading) {
    inline(heading[2], node);
    return node;
  }
  lines.forEach((line, i) => {
    if (i > 0) node.append(document.createElement('br'));
    inline(line, node);
  });
  return node;
}

// Replaces what is in `parent` by `text`.
export function prose(text, parent) {
  const nodes = [];
  let lines = [];
  const flush = () => {
    if (lines.length) nodes.push(block(lines));
    lines = [];
  };
  let code = null;
  for (const line of text.split('\n')) {
    if (code !== null) {
      if (line.startsWith('```')) {
        code = null;
      } else {
        code.textContent += `${line}\n`;
      }
      continue;
    }
    if (line.startsWith('```')) {
      flush();
      const pre = document.createElement('pre');
      code = document.createElement('code');
      pre.tabIndex = 0;  // scrolls by keyboard
      pre.append(code);
      nodes.push(pre);
    } else if (line.trim() === '') {
      flush();
    } else if (/^#{1,6}\s/.test(line)) {
      flush();
      lines = [line];
      flush();
    } else {
      const isItem = /^\s*([-*+]|\d+[.)])\s+/.test(line);
      const wasItem = lines.length && /^\s*([-*+]|\d+[.)])\s+/.test(lines[0]);
      if (lines.length && isItem !== Boolean(wasItem)) flush();
      lines.push(line);
    }
  }
  flush();
  parent.replaceChildren(...nodes);
}
