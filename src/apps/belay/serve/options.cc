// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdint>

#include "apps/belay/serve/serve.h"

namespace belay::apps {
namespace {

void AddServerOptions(CLI::App& command, ServeArgs& args,
                      const Context& context) {
  server::ServeOptions& o = args.server;
  command.add_option("--host", o.host,
                     context.T("address to listen on (default 127.0.0.1)",
                               "监听地址（默认 127.0.0.1）"));
  command.add_option("--port", o.port,
                     context.T("port (default 8000; 0: the system's choice)",
                               "端口（默认 8000；0：由系统选择）"));
  command.add_option("--model-name", o.model_name,
                     context.T("name in the API (default: the folder's)",
                               "API 中的模型名（默认：目录名）"));
  command.add_option(
      "--api-key-file", o.api_key_file,
      context.T("file with one key a line; then only they may ask",
                "密钥文件，每行一个；指定后仅持有者可用"));
  command.add_option("--cors-origin", o.cors_origin,
                     context.T("origin of web pages that may ask (* = all)",
                               "允许访问的网页源（* 为全部）"));
  command
      .add_option("--max-queue", o.max_queue,
                  context.T("requests that may wait (default 256)",
                            "可排队的请求数（默认 256）"))
      ->check(CLI::Range(0, 1 << 20));
  command
      .add_option("--request-timeout", o.request_timeout_s,
                  context.T("seconds for a request (default: no limit)",
                            "每个请求的时限，秒（默认不限）"))
      ->check(CLI::Range(0.0, 1e6));
  command
      .add_option("--max-connections", o.max_connections,
                  context.T("open connections (default 4096)",
                            "连接数上限（默认 4096）"))
      ->check(CLI::Range(1, 1 << 20));
  command
      .add_option("--max-body-mib", args.max_body_mib,
                  context.T("largest request body (default 16)",
                            "请求体上限，MiB（默认 16）"))
      ->check(CLI::Range(1, 1024));
  command
      .add_option("--body-timeout", o.body_timeout_s,
                  context.T("seconds for a body to arrive (default 60)",
                            "请求体到达时限，秒（默认 60）"))
      ->check(CLI::Range(0.1, 1e6));
  command
      .add_option("--io-threads", o.n_io_threads,
                  context.T("threads for HTTP and text (default 2)",
                            "HTTP 与文本处理线程数（默认 2）"))
      ->check(CLI::Range(1, 64));
  command.add_flag(
      "--no-canary", args.no_canary,
      context.T("serve without the test before traffic", "跳过启动自检"));
  command.add_flag("--strict-canary", args.strict_canary,
                   context.T("do not serve when it warns (SRV-013, SRV-014)",
                             "自检有警告时拒绝服务（SRV-013、SRV-014）"));
}

void AddEngineOptions(CLI::App& command, ServeArgs& args,
                      const Context& context) {
  command
      .add_option("--max-batch", args.max_batch,
                  context.T("requests at once (default 16)",
                            "同时处理的请求数（默认 16）"))
      ->check(CLI::Range(1, 4096));
  command
      .add_option("--max-context", args.max_context,
                  context.T("positions of a request (default 4096)",
                            "每个请求的上下文长度（默认 4096）"))
      ->check(CLI::Range(int64_t{2}, int64_t{1} << 30));
  command
      .add_option(
          "--cache-tokens", args.cache_tokens,
          context.T("positions of all requests together (default: enough)",
                    "所有请求合计的上下文长度（默认：足够）"))
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  command
      .add_option("--tokens-per-step", args.tokens_per_step,
                  context.T("tokens of a step (default 512)",
                            "每步处理的词元数（默认 512）"))
      ->check(CLI::Range(1, 1 << 20));
  command
      .add_option("--prefill-per-step", args.prefill_per_step,
                  context.T("prompt tokens of a step while others decode",
                            "有请求在解码时每步处理的提示词元数"))
      ->check(CLI::Range(0, 1 << 20));
  command
      .add_option("--memory", args.memory_gib,
                  context.T("GiB for caches and activations (default: what "
                            "is free)",
                            "缓存与激活可用的 GiB（默认：可用内存）"))
      ->check(CLI::Range(0.0, 1e9));
  command
      .add_option("--prefix-cache-mib", args.prefix_cache_mib,
                  context.T("for resume points of prefixes (default 256; "
                            "0: no prefix cache)",
                            "前缀恢复点可用的 MiB（默认 256；0：关闭）"))
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 30));
  command.add_option("--spill-dir", args.spill_folder,
                     context.T("folder that keeps prefixes over a restart",
                               "用于在重启后保留前缀的目录"));
  command
      .add_option("--spill-gib", args.spill_gib,
                  context.T("size of that folder (default 4)",
                            "该目录的大小，GiB（默认 4）"))
      ->check(CLI::Range(0.0, 1e9));
  command
      .add_option("--reserve-mib", args.reserve_mib,
                  context.T("memory to leave free (default 512; 0: no guard)",
                            "保留的空闲内存，MiB（默认 512；0：不保护）"))
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 30));
  command.add_flag("--speculative", args.speculative,
                   context.T("draft with the MTP head; same tokens, faster",
                             "用 MTP 头起草；词元相同，速度更快"));
  command.add_option("--numa", args.numa,
                     context.T("auto, off (default) or a node to run on",
                               "auto、off（默认）或要绑定的 NUMA 节点"));
  command
      .add_option("--draft-tokens", args.draft_tokens,
                  context.T("tokens it drafts a step, 1 to 4 (default 1)",
                            "每步起草的词元数，1 到 4（默认 1）"))
      ->check(CLI::Range(1, static_cast<int>(engine::kMaxDraftTokens)));
}

}  // namespace

void AddServeOptions(CLI::App& command, ServeArgs& args,
                     const Context& context) {
  AddModelOptions(command, args.model, context);
  command
      .add_option("--thinking", args.talk.thinking,
                  context.T("off (default) or on, for requests that do not say",
                            "off（默认）或 on，用于未指定的请求"))
      ->check(CLI::IsMember({"off", "on"}));
  command.add_option(
      "--encoding", args.talk.encoding,
      context.T("chat encoding: initial or 0731 (default: the checkpoint's)",
                "对话编码：initial 或 0731（默认：由检查点决定）"));
  AddServerOptions(command, args, context);
  AddEngineOptions(command, args, context);
}

}  // namespace belay::apps
