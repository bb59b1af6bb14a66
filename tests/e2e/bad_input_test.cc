// SPDX-License-Identifier: Apache-2.0
// Whatever is wrong with what `belay run` and `belay trace` are given: a
// catalogue id and the exit code of its kind, never a crash. Ids and codes are
// held, not prose.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "e2e/process.h"

namespace belay::e2e {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Args = std::vector<std::string>;

constexpr const char* kDemo = "data/demo";

std::string ReadAll(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void WriteAll(const fs::path& path, const std::string& text) {
  fs::remove(path);  // it may be a link to the real one
  std::ofstream(path, std::ios::binary) << text;
}

// 2 for what was typed, 3 for everything else.
int CodeOf(const std::string& id) { return id.starts_with("ARG-") ? 2 : 3; }

// The id in the JSON error of a run.
std::string IdOf(const ProcessResult& result) {
  const auto json = Json::parse(result.out, nullptr, false);
  if (json.is_discarded() || !json.contains("error")) {
    return "no error in: " + result.out + result.err;
  }
  return json["error"]["id"];
}

void ExpectError(Args args, const std::string& id) {
  args.push_back("--json");
  const ProcessResult result = RunProgram(args);
  EXPECT_EQ(IdOf(result), id);
  EXPECT_EQ(result.code, CodeOf(id)) << result.out << result.err;
}

// A copy of the demo checkpoint in a folder of its own.
class Broken {
 public:
  explicit Broken(const std::string& name)
      : folder_(fs::temp_directory_path() /
                ("belay_bad_" + std::to_string(getpid()) + "_" + name)) {
    fs::create_directories(folder_);
    for (const char* file : {"config.json", "model.safetensors"}) {
      fs::create_symlink(fs::absolute(fs::path(kDemo) / file), folder_ / file);
    }
  }
  ~Broken() { fs::remove_all(folder_); }

  fs::path folder() const { return folder_; }
  fs::path config() const { return folder_ / "config.json"; }
  fs::path model() const { return folder_ / "model.safetensors"; }

  void EditConfig(const std::function<void(Json&)>& edit) {
    Json json = Json::parse(ReadAll(config()));
    edit(json);
    WriteAll(config(), json.dump());
  }

  // Header and data of model.safetensors, to be changed at will.
  void EditModel(
      const std::function<void(Json& header, std::string& data)>& edit) {
    const std::string file = ReadAll(model());
    uint64_t n = 0;
    std::memcpy(&n, file.data(), sizeof(n));
    Json header = Json::parse(file.substr(8, n));
    std::string data = file.substr(8 + n);
    edit(header, data);
    std::string text = header.dump();
    text.append((8 - text.size() % 8) % 8, ' ');
    n = text.size();
    std::string length(8, '\0');
    std::memcpy(length.data(), &n, sizeof(n));
    WriteAll(model(), length + text + data);
  }

  // Changes the first 8 bytes, the length of the header.
  void SetHeaderLength(uint64_t n) {
    std::string file = ReadAll(model());
    std::memcpy(file.data(), &n, sizeof(n));
    WriteAll(model(), file);
  }

 private:
  fs::path folder_;
};

// The bytes of a tensor.
char* DataOf(const Json& header, std::string& data, const std::string& name) {
  return data.data() + header.at(name).at("data_offsets").at(0).get<uint64_t>();
}

struct CheckpointCase {
  std::string name;
  std::string id;
  std::function<void(Broken&)> damage;
};

CheckpointCase Model(
    std::string name, std::string id,
    std::function<void(Json& header, std::string& data)> edit) {
  return {std::move(name), std::move(id),
          [edit](Broken& broken) { broken.EditModel(edit); }};
}

CheckpointCase Config(std::string name, std::string id,
                      std::function<void(Json&)> edit) {
  return {std::move(name), std::move(id),
          [edit](Broken& broken) { broken.EditConfig(edit); }};
}

std::vector<CheckpointCase> CheckpointCases() {
  return {
      {"TruncatedFile", "CKPT-001",
       [](Broken& b) {
         const std::string file = ReadAll(b.model());
         WriteAll(b.model(), file.substr(0, file.size() - 1000));
       }},
      {"FileOfThreeBytes", "CKPT-001",
       [](Broken& b) { WriteAll(b.model(), "abc"); }},
      {"HeaderLongerThanTheFile", "CKPT-002",
       [](Broken& b) { b.SetHeaderLength(90'000'000); }},
      {"HeaderLengthOfAllOnes", "CKPT-002",
       [](Broken& b) { b.SetHeaderLength(~uint64_t{0}); }},
      {"HeaderIsNotJson", "CKPT-003",
       [](Broken& b) {
         std::string file = ReadAll(b.model());
         file[8] = '[';
         WriteAll(b.model(), file);
       }},
      Model("OverlappingOffsets", "CKPT-004",
            [](Json& h, std::string&) {
              h["norm.weight"]["data_offsets"] =
                  h["hc_head_fn"]["data_offsets"];
            }),
      Model("OffsetsOutOfRange", "CKPT-004",
            [](Json& h, std::string&) {
              h["norm.weight"]["data_offsets"] = {uint64_t{1} << 40,
                                                  (uint64_t{1} << 40) + 512};
            }),
      Model("WrongDtype", "CKPT-005",
            [](Json& h, std::string&) { h["norm.weight"]["dtype"] = "F16"; }),
      Model("WrongShape", "CKPT-006",
            [](Json& h, std::string&) {
              auto& shape = h["head.weight"]["shape"];
              shape = {shape[1], shape[0]};
            }),
      Model("MissingTensor", "CKPT-007",
            [](Json& h, std::string&) {
              h["another.weight"] = h["norm.weight"];
              h.erase("norm.weight");
            }),
      Model("NanScale", "CKPT-008",
            [](Json& h, std::string& data) {
              *DataOf(h, data, "layers.1.ffn.experts.3.w2.scale") = '\xff';
            }),
      Model("ExpertIdOutOfRange", "CKPT-013",
            [](Json& h, std::string& data) {
              *DataOf(h, data, "layers.0.ffn.gate.tid2eid") = 100;
            }),
      {"ModelFileIsAFolder", "SYS-001",
       [](Broken& b) {
         fs::remove(b.model());
         fs::create_directory(b.model());
       }},
      {"NoModelFile", "CKPT-014", [](Broken& b) { fs::remove(b.model()); }},
      {"NoConfig", "CKPT-014", [](Broken& b) { fs::remove(b.config()); }},
      {"MissingShard", "CKPT-011",
       [](Broken& b) {
         fs::remove(b.model());
         WriteAll(b.folder() / "model.safetensors.index.json",
                  R"({"weight_map": {"norm.weight": "gone.safetensors"}})");
       }},
      {"BadIndex", "CKPT-010",
       [](Broken& b) {
         fs::remove(b.model());
         WriteAll(b.folder() / "model.safetensors.index.json", "[]");
       }},
      {"ConfigIsNotJson", "CONF-004",
       [](Broken& b) { WriteAll(b.config(), "{\"hidden_size\": "); }},
      Config("ConfigMissesAKey", "CONF-001",
             [](Json& c) { c.erase("hidden_size"); }),
      Config("UnknownModelType", "CONF-002",
             [](Json& c) {
               c["model_type"] = "llama";
               c.erase("architectures");
             }),
      Config("ConfigOutOfRange", "CONF-003",
             [](Json& c) { c["hidden_size"] = -256; }),
      Config("ConfigWrongType", "CONF-003",
             [](Json& c) { c["hidden_size"] = "many"; }),
  };
}

class BadCheckpointTest : public ::testing::TestWithParam<CheckpointCase> {};

TEST_P(BadCheckpointTest, HasAnId) {
  Broken broken(GetParam().name);
  GetParam().damage(broken);
  ExpectError({"run", "--model", broken.folder().string(), "--tokens", "1,2",
               "--max-tokens", "1"},
              GetParam().id);
}

INSTANTIATE_TEST_SUITE_P(All, BadCheckpointTest,
                         ::testing::ValuesIn(CheckpointCases()),
                         [](const auto& test) { return test.param.name; });

// An untouched copy runs: what the cases report is their damage.
TEST(BadCheckpointTest, AnIntactCopyRuns) {
  const Broken copy("intact");
  const ProcessResult result =
      RunProgram({"run", "--model", copy.folder().string(), "--tokens", "1,2",
                  "--max-tokens", "1"});
  EXPECT_EQ(result.code, 0) << result.out << result.err;
}

TEST(BadCheckpointTest, UnknownTensorsWarnAndStrictRefuses) {
  Broken broken("unknown");
  broken.EditModel([](Json& header, std::string& data) {
    header["left.over"] = {{"dtype", "U8"},
                           {"shape", {8}},
                           {"data_offsets", {data.size(), data.size() + 8}}};
    data.append(8, '\0');
  });
  Args args = {"run",      "--model", broken.folder().string(),
               "--tokens", "1,2",     "--max-tokens",
               "1"};
  const ProcessResult warned = RunProgram(args);
  EXPECT_EQ(warned.code, 0) << warned.out << warned.err;
  EXPECT_NE(warned.err.find("left.over"), std::string::npos) << warned.err;
  args.push_back("--strict");
  ExpectError(args, "CKPT-009");
}

struct ArgumentCase {
  std::string id;
  Args args;  // after "run --model data/demo"
};

TEST(BadArgumentTest, RunNamesTheArgument) {
  const Args tokens = {"--tokens", "1,2,3"};
  const auto with = [&tokens](Args more) {
    more.insert(more.begin(), tokens.begin(), tokens.end());
    return more;
  };
  const std::vector<ArgumentCase> cases = {
      {"ARG-004", {}},
      {"ARG-001", with({"--tokens-file", "also.json"})},
      {"ARG-001", with({"--no-such-option"})},
      {"ARG-001", with({"--max-tokens", "0"})},
      {"ARG-001", with({"--max-tokens", "many"})},
      {"ARG-001", with({"--max-context", "-4"})},
      {"ARG-001", with({"--tokens-per-step", "0"})},
      {"ARG-001", with({"--memory", "-3"})},
      {"ARG-001", with({"--memory", "nan"})},
      {"ARG-001", with({"--memory", "1e30"})},
      {"ARG-001", with({"--numerics", "approximate"})},
      {"ARG-002", with({"--threads", "0"})},
      {"ARG-002", with({"--threads", "100000"})},
      {"ARG-002", with({"--threads", "-1"})},
      {"ARG-001", with({"--seed", "-1"})},
      {"ARG-003", {"--tokens", "1,2560"}},
      {"ARG-004", {"--tokens", ""}},
      {"ARG-005", {"--tokens", "1,two"}},
      {"ARG-005", {"--tokens", "1,99999999999999999999"}},
      {"ARG-006", with({"--backend", "abacus"})},
      {"ARG-007", with({"--temp", "-1"})},
      {"ARG-007", with({"--temp", "nan"})},
      {"ARG-007", with({"--top-p", "0"})},
      {"ARG-007", with({"--top-k", "-1"})},
      {"ARG-007", with({"--min-p", "2"})},
      {"ENG-001", {"--tokens", "1,2,3,4,5", "--max-context", "4"}},
      {"ENG-001", with({"--max-context", "2000000"})},
      {"ENG-003", with({"--memory", "0.000001"})},
      {"SYS-001", {"--tokens-file", "no/such/file.json"}},
  };
  for (const ArgumentCase& test : cases) {
    Args args = {"run", "--model", kDemo};
    args.insert(args.end(), test.args.begin(), test.args.end());
    SCOPED_TRACE(::testing::PrintToString(args));
    ExpectError(args, test.id);
  }
  ExpectError({"run", "--tokens", "1"}, "ARG-001");
  ExpectError({"run", "--model", "no/such/folder", "--tokens", "1"},
              "CKPT-014");
}

TEST(BadArgumentTest, TokensFiles) {
  const fs::path path = fs::temp_directory_path() /
                        ("belay_tokens_" + std::to_string(getpid()) + ".json");
  const std::string deep =
      std::string(1'000'000, '[') + std::string(1'000'000, ']');
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"[]", "ARG-004"},         {"{\"a\": 1}", "ARG-005"},
      {"[1, \"2\"]", "ARG-005"}, {"[1, 2.5]", "ARG-005"},
      {"not json", "ARG-005"},   {"[1, -4]", "ARG-003"},
      {deep, "ARG-005"},
  };
  for (const auto& [text, id] : cases) {
    SCOPED_TRACE(text.substr(0, 40));
    WriteAll(path, text);
    ExpectError({"run", "--model", kDemo, "--tokens-file", path.string()}, id);
  }
  fs::remove(path);
}

TEST(BadArgumentTest, Trace) {
  const std::string out = (fs::temp_directory_path() /
                           ("belay_trace_" + std::to_string(getpid()) + ".st"))
                              .string();
  const auto trace = [](Args more, const std::string& id) {
    Args args = {"trace", "--model", kDemo, "--tokens", "1,2,3"};
    args.insert(args.end(), more.begin(), more.end());
    SCOPED_TRACE(::testing::PrintToString(args));
    ExpectError(args, id);
  };
  trace({}, "ARG-001");
  trace({"--out", out, "--decode", "2", "--feed", "1"}, "ARG-005");
  trace({"--out", out, "--decode", "1", "--feed", "1,9999"}, "ARG-003");
  trace({"--out", out, "--replay", "no/such/file"}, "SYS-001");
  trace({"--out", out, "--replay", std::string(kDemo) + "/model.safetensors"},
        "TRACE-001");
  trace({"--out", out, "--inject", std::string(kDemo) + "/model.safetensors",
         "--inject-tensor", "norm.weight", "--inject-layer", "1"},
        "TRACE-001");
  trace({"--out", out, "--inject-layer", "1"}, "ARG-001");
  trace({"--out", out, "--replay-prefix", "p7."}, "ARG-001");
  trace({"--out", "no/such/folder/t.st"}, "SYS-002");
  trace({"--out", "/dev/full"}, "SYS-002");
  EXPECT_FALSE(fs::exists(out)) << "nothing is left behind";
}

TEST(BadArgumentTest, BothLanguages) {
  const Args args = {"run", "--model", kDemo, "--tokens", "1,2560"};
  const ProcessResult english = RunProgram(args);
  EXPECT_TRUE(english.err.starts_with("error ARG-003: ")) << english.err;
  const ProcessResult chinese =
      RunProgram(args, {.environment = {"LC_ALL=zh_CN.UTF-8"}});
  EXPECT_TRUE(chinese.err.starts_with("错误 ARG-003")) << chinese.err;
  EXPECT_EQ(english.code, 2);
  EXPECT_EQ(chinese.code, 2);
  EXPECT_EQ(english.out, "");
}

TEST(FullDiskTest, RunSaysSo) {
  const ProcessResult result =
      RunProgram({"run", "--model", kDemo, "--tokens", "1,2,3"},
                 {.out_path = "/dev/full"});
  EXPECT_EQ(result.code, 3);
  EXPECT_TRUE(result.err.find("SYS-002") != std::string::npos) << result.err;
}

TEST(InterruptTest, CtrlCEndsARun) {
  const ProcessResult result =
      RunProgram({"run", "--model", kDemo, "--tokens", "1,2,3", "--max-tokens",
                  "900000", "--max-context", "1000000", "--ignore-eos"},
                 {.interrupt_after_ms = 1500});
  EXPECT_EQ(result.code, 130) << result.err;
  EXPECT_NE(result.err.find("SYS-004"), std::string::npos) << result.err;
}

TEST(InterruptTest, CtrlCKeepsTheTokensOfAJsonRun) {
  const ProcessResult result = RunProgram(
      {"run", "--model", kDemo, "--tokens", "1,2,3", "--max-tokens", "900000",
       "--max-context", "1000000", "--ignore-eos", "--json"},
      {.interrupt_after_ms = 3000});
  EXPECT_EQ(result.code, 130) << result.err;
  EXPECT_NE(result.err.find("SYS-004"), std::string::npos) << result.err;
  const auto json = nlohmann::json::parse(result.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << result.out;
  EXPECT_EQ(json.value("finish_reason", ""), "cancelled");
  EXPECT_TRUE(json["tokens"].is_array()) << result.out;
}

}  // namespace
}  // namespace belay::e2e
