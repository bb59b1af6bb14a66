// SPDX-License-Identifier: Apache-2.0
#include "text/grammar/schema/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "text/grammar/walk_test.h"

namespace belay::text {
namespace {

using testing::HasSubstr;

StatusOr<std::shared_ptr<const Grammar>> Compile(const std::string& schema) {
  BELAY_ASSIGN_OR_RETURN(const JsonValue json, ParseJson(schema));
  return CompileJsonSchema(json);
}

struct Case {
  std::string schema;
  std::vector<std::string> good;
  std::vector<std::string> bad;
};

class SchemaTest : public testing::TestWithParam<Case> {};

TEST_P(SchemaTest, TakesWhatIsValidAndNothingElse) {
  const auto grammar = Compile(GetParam().schema);
  ASSERT_TRUE(grammar.ok()) << grammar.status();
  for (const std::string& text : GetParam().good) {
    EXPECT_TRUE(Matches(*grammar, text)) << text;
  }
  for (const std::string& text : GetParam().bad) {
    EXPECT_FALSE(Matches(*grammar, text)) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Values, SchemaTest,
    testing::Values(
        Case{"true",
             {"1", "[]", "{}", R"({"a":[1,{"b":null}]})", " \"x\"",
              "\n  [1,\n    2]"},
             {"", "nul", "[1,]", "01", "1 ", "  1", R"("\x")", "\"\n\"",
              R"("\ud800")", R"({"a":1,})", "\"\xff\"", "\"\xc0\xaf\"",
              "\"\xed\xa0\x80\"", "+1", ".5", "1.", "1e"}},
        Case{"true",
             {R"("\ud83d\ude00")", "\"\xf0\x9f\x98\x80\"", R"("\u00e9\/")",
              "-0.5e-10", "1E5"},
             {R"("\ude00\ud83d")", R"("\ud83dx")", "\"\xf5\x80\x80\x80\""}},
        Case{R"({"type":"integer"})",
             {"0", "-7", "123456789"},
             {"1.0", "1e3", "01", "-", "true"}},
        Case{R"({"type":["string","null"]})", {"null", "\"a\""}, {"1", "{}"}},
        Case{R"({"enum":["red","reddish","green",1,null,{"a":[1]}]})",
             {"\"red\"", "\"reddish\"", "1", "null", R"({"a": [1]})"},
             {"\"re\"", "\"blue\"", "2"}},
        Case{R"({"const":"a\"b\n"})", {R"("a\"b\n")"}, {"\"a\""}},
        Case{R"({"type":"string","enum":["a",1]})", {"\"a\""}, {"1"}},
        Case{R"({"minLength":2,"maxLength":3,"title":"t"})",
             {"\"ab\"", "\"\xe4\xb8\xad\xe6\x96\x87\xe5\xad\x97\"",
              R"("\n\ud83d\ude00")"},
             {"\"a\"", "\"abcd\"", "7"}},
        Case{
            R"({"type":"boolean"})", {"true", "false"}, {"null", "\"true\""}}));

INSTANTIATE_TEST_SUITE_P(
    Numbers, SchemaTest,
    testing::Values(
        Case{R"({"type":"integer","minimum":5,"maximum":120})",
             {"5", "9", "10", "99", "100", "120"},
             {"4", "0", "121", "1000", "-5", "5.0"}},
        Case{R"({"type":"integer","minimum":-12,"maximum":3})",
             {"-12", "-1", "0", "3", "-9"},
             {"-13", "4", "-0", "-20"}},
        Case{R"({"type":"integer","exclusiveMinimum":0})",
             {"1", "10", "999999"},
             {"0", "-1"}},
        Case{R"({"type":"integer","minimum":0.5,"maximum":2.5})",
             {"1", "2"},
             {"0", "3"}},
        Case{R"({"type":"integer","maximum":-3})",
             {"-3", "-4", "-1000"},
             {"-2", "0", "3"}},
        Case{R"({"type":"number","minimum":0,"maximum":1})",
             {"0", "1", "0.5", "0.0", "1.0", "0.999999"},
             {"1.1", "1.000001", "-0.5", "2", "1e0"}},
        Case{R"({"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1})",
             {"0.5", "0.0001", "0.9999"},
             {"0", "1", "0.0", "1.0"}},
        Case{R"({"minimum":-1.25,"exclusiveMaximum":2.5})",
             {"-1.25", "-1.2", "0", "2.49", "2.4999", "-1"},
             {"-1.26", "2.5", "-2", "2.50", "3"}},
        Case{R"({"type":"number","minimum":1e2})",
             {"100", "100.5", "5000"},
             {"99", "99.9", "-100"}}));

INSTANTIATE_TEST_SUITE_P(
    Strings, SchemaTest,
    testing::Values(
        Case{R"({"pattern":"^[a-z]+-\\d{2,3}$"})",
             {"\"ab-12\"", "\"z-123\""},
             {"\"ab-1\"", "\"-12\"", "\"ab-1234\"", "\"AB-12\""}},
        Case{R"({"pattern":"ab"})",
             {"\"ab\"", "\"xxabyy\"", "\"aab\""},
             {"\"a\"", "\"ba\""}},
        Case{R"({"pattern":"^(foo|ba[rz])?$"})",
             {"\"\"", "\"foo\"", "\"bar\"", "\"baz\""},
             {"\"fo\"", "\"ba\""}},
        Case{R"({"pattern":"^a|b$"})", {"\"axx\"", "\"xxb\""}, {"\"xax\""}},
        Case{R"({"pattern":"^[^\"\\\\]$"})", {"\"x\""}, {R"("\"")", R"("\\")"}},
        Case{R"({"pattern":"^[\"\\n]$"})", {R"("\"")", R"("\n")"}, {"\"a\""}},
        Case{R"({"pattern":"^(a*)*$","maxLength":3})",
             {"\"\"", "\"aaa\""},
             {"\"aaaa\"", "\"b\""}},
        Case{R"({"pattern":"^\\u4e2d.$"})",
             {"\"\xe4\xb8\xad\xe6\x96\x87\""},
             {"\"\xe4\xb8\xad\""}},
        Case{R"({"format":"date"})",
             {"\"2026-11-30\""},
             {"\"2026-11-31\"", "\"2026-13-01\"", "\"x\""}},
        Case{R"({"format":"date-time"})",
             {"\"2026-11-30T23:59:59Z\""},
             {"\"2026-11-30\""}},
        Case{R"({"format":"ipv4"})", {"\"255.0.10.1\""}, {"\"256.0.0.1\""}}));

INSTANTIATE_TEST_SUITE_P(
    Containers, SchemaTest,
    testing::Values(
        Case{R"({"items":{"type":"integer"},"minItems":1,"maxItems":3})",
             {"[1]", "[1,2]", "[1, 2,3]"},
             {"[]", "[1,2,3,4]", "[\"a\"]"}},
        Case{R"({"prefixItems":[{"const":1},{"type":"string"}],"items":false})",
             {"[]", "[1]", "[1,\"a\"]"},
             {"[1,\"a\",2]", "[\"a\"]"}},
        Case{R"({"type":"array","items":{"type":"null"}})",
             {"[]", "[null,null,null,null]"},
             {"[null null]"}},
        Case{R"({"properties":{"a":{"type":"integer"},"b":{"type":"string"}},
                 "required":["a"],"additionalProperties":false})",
             {R"({"a":1})", R"({"a": 1, "b": "x"})",
              "{\n  \"a\": 1,\n  \"b\": \"x\"\n}"},
             {"{}", R"({"b":"x"})", R"({"a":1,"c":2})", R"({"a":1,"a":2})",
              R"({"a":"x"})"}},
        Case{R"({"properties":{"a":{"type":"integer"}},
                 "additionalProperties":{"type":"boolean"}})",
             {"{}", R"({"a":1,"x":true})", R"({"x":true,"y":false})",
              R"({"ab":true,"":false})"},
             {R"({"x":1})", R"({"a":true})", R"({"\u0061":true})"}},
        Case{R"({"type":"object","required":["x"]})",
             {R"({"x":1})", R"({"x":[],"y":2})"},
             {"{}", R"({"y":2})"}},
        Case{R"({"anyOf":[{"type":"integer"},{"type":"array"}]})",
             {"1", "[1]"},
             {"\"a\""}},
        Case{R"({"oneOf":[
                 {"properties":{"k":{"const":"a"}},"required":["k"]},
                 {"properties":{"k":{"const":"b"},"n":{"type":"integer"}},
                  "required":["k","n"]}]})",
             {R"({"k":"a"})", R"({"k":"b","n":1})"},
             {R"({"k":"b"})", R"({"k":"c"})"}},
        Case{R"({"$ref":"#/$defs/tree","$defs":{"tree":{"type":"object",
                 "properties":{"v":{"type":"integer"},
                   "kids":{"type":"array","items":{"$ref":"#/$defs/tree"}}},
                 "required":["v"],"additionalProperties":false}}})",
             {R"({"v":1})", R"({"v":1,"kids":[{"v":2,"kids":[]}]})"},
             {R"({"kids":[]})", R"({"v":1,"kids":[1]})"}},
        Case{R"({"anyOf":[{"$ref":"#"},{"type":"null"}]})", {"null"}, {"1"}},
        Case{R"({"allOf":[{"$ref":"#/$defs/a~1b"}],"description":"d",
                 "$defs":{"a/b":{"const":3}}})",
             {"3"},
             {"4"}}));

struct Refusal {
  std::string schema;
  std::string id;
  std::string words;
};

class SchemaRefusalTest : public testing::TestWithParam<Refusal> {};

TEST_P(SchemaRefusalTest, NamesWhatItCannotKeep) {
  const auto grammar = Compile(GetParam().schema);
  ASSERT_FALSE(grammar.ok());
  EXPECT_EQ(ErrorIdOf(grammar.status()), GetParam().id) << grammar.status();
  EXPECT_THAT(std::string(grammar.status().message()),
              HasSubstr(GetParam().words));
}

INSTANTIATE_TEST_SUITE_P(
    All, SchemaRefusalTest,
    testing::Values(
        Refusal{"3", "GRAM-001", "#"},
        Refusal{R"({"type":"text"})", "GRAM-001", "#/type"},
        Refusal{R"({"properties":{"a":{"minLength":-1}}})", "GRAM-001",
                "#/properties/a/minLength"},
        Refusal{R"({"items":[{}]})", "GRAM-001", "prefixItems"},
        Refusal{R"({"minimum":NaN})", "GRAM-001", "#/minimum"},
        Refusal{R"({"properties":{"a":{"uniqueItems":true}}})", "GRAM-002",
                "uniqueItems"},
        Refusal{R"({"not":{}})", "GRAM-002", "not"},
        Refusal{R"({"multipleOf":3})", "GRAM-002", "multipleOf"},
        Refusal{R"({"$ref":"#/a","minimum":3})", "GRAM-002",
                "$ref beside minimum"},
        Refusal{R"({"allOf":[{},{}]})", "GRAM-002", "allOf"},
        Refusal{R"({"pattern":"(?=a)b"})", "GRAM-003", "look-around"},
        Refusal{R"({"pattern":"(a)\\1"})", "GRAM-003", "escape"},
        Refusal{R"({"pattern":"a(b"})", "GRAM-003", "')'"},
        Refusal{R"({"format":"iri"})", "GRAM-003", "iri"},
        Refusal{R"({"minimum":2,"maximum":1})", "GRAM-004", "#"},
        Refusal{R"({"required":["a"],"additionalProperties":false})",
                "GRAM-004", "#"},
        Refusal{R"({"properties":{"a":{"$ref":"#"}},"required":["a"]})",
                "GRAM-004", "#"},
        Refusal{R"({"$ref":"#"})", "GRAM-004", "#"},
        Refusal{"false", "GRAM-004", "#"},
        Refusal{R"({"minItems":1000000})", "GRAM-005", "minItems"},
        Refusal{R"({"pattern":"((a{900}){900}){900}"})", "GRAM-005", "pattern"},
        Refusal{R"({"$ref":"#/$defs/no"})", "GRAM-006", "#/$defs/no"},
        Refusal{R"({"$ref":"http://x/y"})", "GRAM-006", "http://x/y"},
        Refusal{R"({"oneOf":[{"type":"integer"},{"type":"number"}]})",
                "GRAM-007", "0 and 1"}));

TEST(SchemaRefusalsTest, SizesThatWouldTakeLong) {
  std::string values = "{\"enum\":[0";
  for (int i = 0; i < 20000; ++i) values += ",0";
  EXPECT_EQ(ErrorIdOf(Compile(values + "]}").status()), "GRAM-005");
  std::string parts = "{\"oneOf\":[{\"const\":-1}";
  for (int i = 0; i < 300; ++i) {
    parts += ",{\"const\":" + std::to_string(i) + "}";
  }
  EXPECT_EQ(ErrorIdOf(Compile(parts + "]}").status()), "GRAM-005");
}

TEST(JsonObjectTest, IsAnyObjectAndOnlyThat) {
  const auto grammar = JsonObjectGrammar();
  ASSERT_TRUE(grammar.ok());
  EXPECT_TRUE(Matches(*grammar, R"({"a": [1, {"b": null}], "c": "d"})"));
  EXPECT_TRUE(Matches(*grammar, "\n{}"));
  EXPECT_FALSE(Matches(*grammar, "[]"));
  EXPECT_FALSE(Matches(*grammar, "{} "));
}

TEST(JsonObjectTest, NestingIsBoundedAndCanAlwaysBeClosed) {
  const auto grammar = JsonObjectGrammar();
  ASSERT_TRUE(grammar.ok());
  Automaton automaton(*grammar);
  int32_t state = automaton.start();
  std::string closers;
  // As deep as it goes: "{"":" for an object, then arrays.
  for (const char c : std::string("{\"\":")) {
    state = automaton.Next(state, static_cast<uint8_t>(c));
  }
  int depth = 0;
  for (;; ++depth) {
    const int32_t next = automaton.Next(state, '[');
    if (next == Automaton::kDead) break;
    state = next;
  }
  EXPECT_GT(depth, 50);
  EXPECT_LT(depth, kMaxJsonDepth);
  for (; depth > 0; --depth) {
    state = automaton.Next(state, ']');
    ASSERT_NE(state, Automaton::kDead);
  }
  state = automaton.Next(state, '}');
  ASSERT_NE(state, Automaton::kDead);
  EXPECT_TRUE(automaton.IsFinal(state));
}

TEST(ToolCallGrammarTest, IsTheMarkupOfTheEncoding) {
  const auto json = ParseJson(R"([{"name":"get","parameters":{
      "type":"object","required":["city"],
      "properties":{"city":{"type":"string"},"days":{"type":"integer"}}}},
      {"name":"odd","parameters":{"not":{}}}])");
  ASSERT_TRUE(json.ok());
  const auto grammar = CompileToolCalls(json->items, {});
  ASSERT_TRUE(grammar.ok()) << grammar.status();
  const auto spelled = [](std::string text) {
    const std::string bar = "\xef\xbd\x9c";
    const std::string marker = bar + "DSML" + bar;
    for (size_t at; (at = text.find('@')) != std::string::npos;) {
      text.replace(at, 1, std::string("\xff\0", 2));
    }
    return text;
  };
  const std::string city =
      "\n\n<@tool_calls>\n<@invoke name=\"get\">\n"
      "<@parameter name=\"city\" string=\"true\">a </b> \"c\"</@parameter>";
  const std::string end = "\n</@invoke>\n</@tool_calls>";
  const std::string days =
      "\n<@parameter name=\"days\" string=\"false\">3</@parameter>";
  EXPECT_TRUE(Matches(*grammar, spelled(city + end)));
  EXPECT_TRUE(Matches(*grammar, spelled(city + days + end)));
  EXPECT_FALSE(Matches(*grammar, spelled(city + days + days + end)));
  EXPECT_FALSE(Matches(*grammar, spelled("hello")));
  EXPECT_TRUE(Matches(
      *grammar,
      spelled("\n\n<@tool_calls>\n<@invoke name=\"odd\">\n\n</@invoke>\n"
              "<@invoke name=\"odd\">\n<@parameter name=\"x\" "
              "string=\"false\">[1]</@parameter>\n</@invoke>\n"
              "</@tool_calls>")));
  // Named, one call, and no parameter missing.
  const auto named =
      CompileToolCalls(json->items, {.name = "get", .parallel = false});
  ASSERT_TRUE(named.ok());
  EXPECT_TRUE(Matches(*named, spelled(city + end)));
  EXPECT_FALSE(Matches(
      *named,
      spelled("\n\n<@tool_calls>\n<@invoke name=\"get\">\n\n</@invoke>\n"
              "</@tool_calls>")));
  EXPECT_FALSE(CompileToolCalls(json->items, {.name = "none"}).ok());
}

// Ordinary tokens can spell a marker, and who reads the text again would take
// it for one: a JSON string has its bar as an escape, wherever it stands.
TEST(SchemaBarTest, NoStringSpellsAMarker) {
  const std::string raw =
      "<\xef\xbd\x9c"
      "DSML\xef\xbd\x9c"
      "tool_calls>";
  const std::string escaped =
      "<\\uff5c"
      "DSML\\uff5c"
      "tool_calls>";
  for (const std::string& schema : {
           std::string(R"({"type":"string"})"),
           std::string(R"({"type":"string","maxLength":40})"),
           std::string(R"({"type":"string","pattern":"^<.*>$"})"),
           R"({"enum":[")" + raw + R"("]})",
       }) {
    SCOPED_TRACE(schema);
    const auto grammar = Compile(schema);
    ASSERT_TRUE(grammar.ok()) << grammar.status();
    EXPECT_FALSE(Matches(*grammar, "\"" + raw + "\""));
    EXPECT_TRUE(Matches(*grammar, "\"" + escaped + "\""));
  }
  // Keys: those of the schema, any others, and those beside names.
  const auto named =
      Compile(R"({"properties":{")" + raw + R"(":{"type":"integer"}}})");
  ASSERT_TRUE(named.ok());
  EXPECT_TRUE(Matches(*named, "{\"" + escaped + "\":1}"));
  for (const std::string& schema :
       {std::string(R"({"type":"object"})"),
        std::string(R"({"properties":{"a":{}}})")}) {
    const auto grammar = Compile(schema);
    ASSERT_TRUE(grammar.ok());
    EXPECT_FALSE(Matches(*grammar, "{\"" + raw + "\":1}"));
    EXPECT_FALSE(Matches(*grammar, "{\"b" + raw + "\":1}"));
    EXPECT_TRUE(Matches(*grammar, "{\"b" + escaped + "\":1}"));
  }
}

TEST(ToolCallGrammarTest, ValuesDoNotSpellTheirEnd) {
  const auto spelled = [](std::string text) {
    for (size_t at; (at = text.find('@')) != std::string::npos;) {
      text.replace(at, 1, std::string("\xff\0", 2));
    }
    return text;
  };
  const std::string end =
      "</\xef\xbd\x9c"
      "DSML\xef\xbd\x9c"
      "parameter>";
  const auto json = ParseJson(R"([{"name":"f","parameters":{
      "type":"object","required":["v"],"properties":{"v":{"enum":[")" +
                              end + R"(",["x"]]}}}},
      {"name":"g","parameters":{"type":"object","required":["v"],
      "properties":{"v":{"type":"array","items":{"type":"string"}}}}}])");
  ASSERT_TRUE(json.ok());
  const auto grammar = CompileToolCalls(json->items, {});
  ASSERT_TRUE(grammar.ok()) << grammar.status();
  const auto call = [&](const char* name, const char* is_string,
                        const std::string& value) {
    return spelled(std::string("\n\n<@tool_calls>\n<@invoke name=\"") + name +
                   "\">\n<@parameter name=\"v\" string=\"" + is_string +
                   "\">") +
           value + spelled("</@parameter>\n</@invoke>\n</@tool_calls>");
  };
  const std::string escaped =
      "</\\uff5c"
      "DSML\\uff5c"
      "parameter>";
  EXPECT_FALSE(Matches(*grammar, call("f", "true", end)));
  EXPECT_TRUE(Matches(*grammar, call("f", "false", "\"" + escaped + "\"")));
  EXPECT_TRUE(Matches(*grammar, call("f", "false", "[\"x\"]")));
  EXPECT_FALSE(Matches(*grammar, call("g", "false", "[\"" + end + "\"]")));
  EXPECT_TRUE(Matches(*grammar, call("g", "false", "[\"" + escaped + "\"]")));
}

TEST(ToolCallGrammarTest, StrictFunctionsKeepTheirErrors) {
  const auto json = ParseJson(
      R"([{"name":"odd","strict":true,"parameters":{"type":"object","not":{}}}])");
  ASSERT_TRUE(json.ok());
  const auto grammar = CompileToolCalls(json->items, {});
  EXPECT_EQ(ErrorIdOf(grammar.status()), "GRAM-002");
}

}  // namespace
}  // namespace belay::text
