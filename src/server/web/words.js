// SPDX-License-Identifier: Apache-2.0
// Every text of the page, in both languages.

const en = {
  skip: 'Skip to the message box',
  newChat: 'New chat',
  live: 'Live',
  theme: 'Light or dark',
  conversation: 'Conversation',
  welcome: 'What shall we look at?',
  welcomeText: 'Everything stays with this server. Reasoning is folded, tool calls are shown, and any answer can be stopped.',
  message: 'Message',
  placeholder: 'Write a message…',
  settings: 'Settings',
  thinking: 'Think before answering',
  temperature: 'Temperature',
  maxTokens: 'Longest answer (tokens)',
  system: 'Instructions to the model',
  toolsJson: 'Tools, as a JSON list',
  apiKey: 'API key, if the server asks for one',
  hint: 'Enter sends, Shift+Enter breaks the line, Esc stops',
  send: 'Send',
  stop: 'Stop',
  panel: 'What the server does',
  loading: 'Loading the model',
  speed: 'Tokens per second',
  batch: 'In the batch',
  queue: 'Waiting',
  latency: 'Latency, last minute',
  ttft: 'Time to the first token',
  tpot: 'Time per further token',
  cache: 'Cache pages',
  pagesUsed: 'in use',
  pagesCached: 'kept prefixes',
  pagesFree: 'free',
  prefixHits: 'prefix hits',
  memory: 'Memory',
  resident: 'resident',
  mem_weights: 'weights',
  mem_activations: 'activations',
  mem_window: 'window cache',
  mem_compressor_state: 'compressor state',
  mem_pages: 'cache pages',
  mem_step: 'step buffers',
  mem_workspace: 'workspace',
  you: 'You',
  belay: 'Answer',
  reasoning: 'Reasoning',
  thinkingNow: 'Thinking…',
  answering: 'Answering',
  finished: 'Answer finished',
  stopped: 'Stopped here',
  cut: 'Cut off: the longest answer was reached',
  again: 'Regenerate',
  copy: 'Copy',
  copied: 'Copied',
  call: 'Calls',
  result: 'Result of the call',
  giveResult: 'Send result',
  tokens: 'tokens',
  fromCache: 'from the cache',
  perSecond: 'tokens/s',
  first: 'first after',
  notReady: 'The model is still loading; messages are answered when it is ready.',
  failed: 'The server could not load its model. Its log says why.',
  unreachable: 'The server does not answer.',
  stale: 'No new figures: the server does not answer.',
  noMetrics: 'The figures are not available.',
  badTools: 'The tools are not a JSON list.',
  needKey: 'The server asks for an API key: enter it under Settings.',
  of: 'of',
  guard_no_prefixes: 'Memory is short: kept prefixes were dropped.',
  guard_small_batch: 'Memory is short: the batch is smaller than planned.',
  starters: ['What is error 507034?', 'Explain mixture of experts in three sentences', 'Write a haiku about rope'],
  sparkLabel: 'Tokens per second over the last two minutes',
  cacheLabel: 'Share of cache pages in use and kept',
};

const zh = {
  skip: '跳到输入框',
  newChat: '新对话',
  live: '状态',
  theme: '浅色或深色',
  conversation: '对话',
  welcome: '今天看点什么？',
  welcomeText: '所有内容都留在这台服务器上。推理过程默认折叠，工具调用会显示出来，任何回答都可以随时停止。',
  message: '消息',
  placeholder: '输入消息…',
  settings: '设置',
  thinking: '先思考再回答',
  temperature: '温度',
  maxTokens: '最长回答（词元）',
  system: '给模型的指示',
  toolsJson: '工具（JSON 列表）',
  apiKey: 'API 密钥（服务器要求时填写）',
  hint: 'Enter 发送，Shift+Enter 换行，Esc 停止',
  send: '发送',
  stop: '停止',
  panel: '服务器状态',
  loading: '正在加载模型',
  speed: '每秒词元数',
  batch: '批次中',
  queue: '排队',
  latency: '最近一分钟的延迟',
  ttft: '首个词元的时间',
  tpot: '之后每个词元的时间',
  cache: '缓存页',
  pagesUsed: '使用中',
  pagesCached: '保留的前缀',
  pagesFree: '空闲',
  prefixHits: '前缀命中率',
  memory: '内存',
  resident: '常驻内存',
  mem_weights: '权重',
  mem_activations: '激活',
  mem_window: '窗口缓存',
  mem_compressor_state: '压缩器状态',
  mem_pages: '缓存页',
  mem_step: '步缓冲',
  mem_workspace: '工作区',
  you: '你',
  belay: '回答',
  reasoning: '推理过程',
  thinkingNow: '思考中…',
  answering: '正在回答',
  finished: '回答完毕',
  stopped: '已在此停止',
  cut: '已截断：达到最长回答',
  again: '重新生成',
  copy: '复制',
  copied: '已复制',
  call: '调用',
  result: '调用结果',
  giveResult: '发送结果',
  tokens: '词元',
  fromCache: '来自缓存',
  perSecond: '词元/秒',
  first: '首个词元',
  notReady: '模型仍在加载，就绪后即可回答。',
  failed: '服务器未能加载模型，原因见其日志。',
  unreachable: '服务器没有响应。',
  stale: '没有新数据：服务器没有响应。',
  noMetrics: '无法取得状态数据。',
  badTools: '工具不是合法的 JSON 列表。',
  needKey: '服务器要求 API 密钥：请在“设置”中填写。',
  of: '/',
  guard_no_prefixes: '内存紧张：已丢弃保留的前缀。',
  guard_small_batch: '内存紧张：批次小于计划值。',
  starters: ['错误 507034 是什么？', '用三句话解释混合专家模型', '写一首关于绳索的俳句'],
  sparkLabel: '最近两分钟的每秒词元数',
  cacheLabel: '缓存页中使用与保留的比例',
};

const languages = {en, zh};
let current = 'en';

export function store(key, value) {
  try {
    if (value === undefined) return localStorage.getItem(`belay.${key}`);
    localStorage.setItem(`belay.${key}`, value);
  } catch {
    // No storage: the choice lasts as long as the page.
  }
  return null;
}

export function language() {
  return current;
}

export function has(key) {
  return key in en;
}

// The text `key` in the language of the page.
export function t(key) {
  return languages[current][key] ?? en[key] ?? key;
}

// Sets the language of the page and all its fixed texts.
export function speak(code) {
  current = languages[code] ? code : 'en';
  document.documentElement.lang = current === 'zh' ? 'zh-CN' : 'en';
  for (const node of document.querySelectorAll('[data-i18n]')) {
    node.textContent = t(node.dataset.i18n);
  }
  for (const node of document.querySelectorAll('[data-i18n-label]')) {
    node.setAttribute('aria-label', t(node.dataset.i18nLabel));
    if (node.tagName === 'BUTTON') node.title = t(node.dataset.i18nLabel);
  }
  for (const node of document.querySelectorAll('[data-i18n-placeholder]')) {
    node.placeholder = t(node.dataset.i18nPlaceholder);
  }
}
