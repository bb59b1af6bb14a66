#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each rule of check_tree.py has a tree here that breaks it."""

import contextlib
import io
import os
import pathlib
import sys
import tempfile
import textwrap
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_tree  # noqa: E402
import cpp_shape  # noqa: E402

SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
LAYERS = """\
base:
tensor: base
ops: base tensor
backends/ref: base tensor ops
backends/cpu: base tensor ops
backends: base backends/*
toolkit/*: base
apps/belay: *
cannsim: base
backends/cpu (tests): backends/ref
"""


def header(guard, body=""):
    return (f"{SPDX}#ifndef {guard}\n#define {guard}\n{body}"
            f"#endif  // {guard}\n")


class TreeTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("docs/layers.txt", LAYERS)
        for room in ("base", "tensor", "ops", "backends/ref", "backends/cpu"):
            self.write(f"src/{room}/room.cc", SPDX)

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)

    def run_check(self):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status = check_tree.main(["--root", str(self.root)])
        return status, out.getvalue()

    def assert_clean(self):
        status, out = self.run_check()
        self.assertEqual((status, out.count("\n")), (0, 1), out)

    def assert_found(self, path, rule, status=1):
        got, out = self.run_check()
        self.assertIn(f"{path}: {rule}: ", out)
        self.assertEqual(got, status, out)
        self.assertEqual(out.count("\n"), 2, f"one finding expected:\n{out}")

    def assert_warned(self, path, rule):
        self.assert_found(path, rule, status=0)

    def source(self, body, path="src/base/x.cc"):
        self.write(path, SPDX + body)

    # The arrows.

    def test_a_good_tree_has_no_findings(self):
        self.write("src/base/a.h", header("BELAY_BASE_A_H_"))
        self.source('#include "base/a.h"\n#include "absl/status/status.h"\n'
                    "#include <vector>\n", "src/tensor/x.cc")
        self.assert_clean()

    def test_include_upwards(self):
        self.source('#include "tensor/room.h"\n')
        self.assert_found("src/base/x.cc:2", "layers")

    def test_include_between_back_ends(self):
        self.source('#include "backends/ref/a.h"\n', "src/backends/cpu/x.cc")
        self.assert_found("src/backends/cpu/x.cc:2", "layers")

    def test_a_test_may_include_more(self):
        self.source('#include "backends/ref/a.h"\n',
                    "src/backends/cpu/x_test.cc")
        self.assert_clean()

    def test_star_is_one_folder(self):
        self.source('#include "backends/ref/a.h"\n', "src/backends/x.cc")
        self.assert_clean()

    def test_tools_do_not_see_each_other(self):
        self.source("", "src/toolkit/a/x.cc")
        self.source('#include "toolkit/a/x.h"\n', "src/toolkit/b/x.cc")
        self.assert_found("src/toolkit/b/x.cc:2", "layers")

    def test_apps_may_include_all_rooms(self):
        self.source('#include "ops/x.h"\n#include "backends/cpu/x.h"\n',
                    "src/apps/belay/run/x.cc")
        self.assert_clean()

    def test_cannsim_is_never_included(self):
        self.source('#include "cannsim/x.h"\n', "src/apps/belay/x.cc")
        self.assert_found("src/apps/belay/x.cc:2", "layers")

    def test_cannsim_obeys_layers(self):
        self.source('#include "ops/x.h"\n', "cannsim/x.cc")
        self.assert_found("cannsim/x.cc:2", "layers")

    def test_folder_without_a_room(self):
        self.source("", "src/misc/x.cc")
        self.assert_found("src/misc/x.cc:1", "layers")

    def test_relative_include(self):
        self.source('#include "../base/a.h"\n')
        self.assert_found("src/base/x.cc:2", "include")

    def test_include_without_folder(self):
        self.source('#include "a.h"\n')
        self.assert_found("src/base/x.cc:2", "include")

    def test_own_header_in_angles(self):
        self.source("#include <base/a.h>\n")
        self.assert_found("src/base/x.cc:2", "include")

    def test_cmake_dependency_upwards(self):
        self.write("src/tensor/CMakeLists.txt",
                   "# SPDX-License-Identifier: Apache-2.0\n"
                   "belay_room(tensor COLD DEPS base ops absl::status)\n")
        self.assert_found("src/tensor/CMakeLists.txt:2", "layers")

    # Size.

    def test_file_lines(self):
        for path, soft, hard in (("src/base/x.cc", 400, 600),
                                 ("src/base/x_test.cc", 600, 900),
                                 ("tests/a/x.cc", 600, 900)):
            with self.subTest(path):
                self.source("int x;\n" * (soft - 1), path)
                self.assert_clean()
                self.source("int x;\n" * soft, path)
                self.assert_warned(f"{path}:1", "file-lines")
                self.source("int x;\n" * hard, path)
                self.assert_found(f"{path}:1", "file-lines")
                (self.root / path).unlink()

    def test_header_lines(self):
        self.write("src/base/x.h", header("BELAY_BASE_X_H_", "int x;\n" * 250))
        self.assert_warned("src/base/x.h:1", "file-lines")
        self.write("src/base/x.h", header("BELAY_BASE_X_H_", "int x;\n" * 300))
        self.assert_found("src/base/x.h:1", "file-lines")

    def test_inl_header_lines(self):
        self.write("src/base/x-inl.h",
                   header("BELAY_BASE_X_INL_H_", "int x;\n" * 600))
        self.assert_warned("src/base/x-inl.h:1", "file-lines")
        self.write("src/base/x-inl.h",
                   header("BELAY_BASE_X_INL_H_", "int x;\n" * 800))
        self.assert_found("src/base/x-inl.h:1", "file-lines")

    def test_forward_is_shorter(self):
        self.write("docs/layers.txt", LAYERS + "model: base\n")
        self.source("int x;\n" * 180, "src/model/forward.cc")
        self.assert_warned("src/model/forward.cc:1", "file-lines")
        self.source("int x;\n" * 200, "src/model/forward.cc")
        self.assert_found("src/model/forward.cc:1", "file-lines")

    def test_function_lines(self):
        self.source("void F() {\n" + "  G();\n" * 60 + "}\n")
        self.assert_warned("src/base/x.cc:2", "function-lines")
        self.source("void F() {\n" + "  G();\n" * 100 + "}\n")
        self.assert_found("src/base/x.cc:2", "function-lines")

    def test_parameters(self):
        self.source("void F(int a, int b, int c, int d, int e, int f) {}\n")
        self.assert_warned("src/base/x.cc:2", "parameters")
        self.source(
            "void F(int a, int b, int c, int d, int e, int f, int g) {}\n")
        self.assert_found("src/base/x.cc:2", "parameters")

    def test_parameters_of_a_foreign_abi(self):
        self.source('extern "C" {\n'
                    "int F(int a, int b, int c, int d, int e, int f, int g) "
                    "{ return 0; }\n}\n")
        self.assert_clean()

    def test_nesting(self):
        deep = "void F() {{\n{}{}}}\n"
        self.source(deep.format("if (a) {\n" * 4, "}\n" * 4))
        self.assert_warned("src/base/x.cc:6", "nesting")
        self.source(deep.format("if (a) {\n" * 5, "}\n" * 5))
        self.assert_found("src/base/x.cc:7", "nesting")

    def test_files_in_a_folder(self):
        for i in range(15):
            self.source("", f"src/base/x{i}.cc")
            self.source("", f"src/base/x{i}_test.cc")
        self.assert_warned("src/base:1", "folder-files")
        for i in range(15, 25):
            self.source("", f"src/base/x{i}.cc")
        self.assert_found("src/base:1", "folder-files")

    # What stands where.

    def test_isa_condition(self):
        for condition in ("#ifdef __AVX512F__", "#if defined(__aarch64__)",
                          "#elif BELAY_BACKEND_CANN", "# if __ARM_NEON"):
            with self.subTest(condition):
                self.source(f"{condition}\n#endif\n")
                self.assert_found("src/base/x.cc:2", "isa")

    def test_isa_condition_in_a_back_end(self):
        self.source("#ifdef __aarch64__\n#endif\n", "src/backends/cpu/x.cc")
        self.assert_clean()

    def test_common_folder(self):
        self.source("", "src/base/util/x.cc")
        self.assert_found("src/base/util/x.cc:1", "folder-name")

    def test_environment(self):
        self.source('const char* x = std::getenv("X");\n')
        self.assert_found("src/base/x.cc:2", "environment")
        self.source("", "src/base/x.cc")
        self.source('const char* x = std::getenv("X");\n',
                    "src/apps/belay/x.cc")
        self.assert_clean()

    def test_printing(self):
        for statement in ("std::cout << 1;", "std::cerr << 1;",
                          'printf("x");', 'std::fprintf(stderr, "x");',
                          'fmt::print("x");', 'std::puts("x");',
                          'std::fputs("x", stderr);'):
            with self.subTest(statement):
                self.source(f"void F() {{ {statement} }}\n")
                self.assert_found("src/base/x.cc:2", "printing")

    def test_no_printing(self):
        self.source('// printf("x")\nvoid F() { snprintf(b, 2, "cout"); }\n')
        self.source("void F() { std::cout << 1; }\n", "src/apps/belay/x.cc")
        self.assert_clean()

    def test_cannsim_reads_and_prints_in_one_place(self):
        self.source('void F() { printf("x"); }\n', "cannsim/runtime/x.cc")
        self.assert_found("cannsim/runtime/x.cc:2", "printing")
        self.source('void F() { g = std::getenv("X"); }\n',
                    "cannsim/runtime/x.cc")
        self.assert_found("cannsim/runtime/x.cc:2", "environment")
        self.source("", "cannsim/runtime/x.cc")
        self.source('void F() { g = std::getenv("X"); }\n',
                    "cannsim/config/x.cc")
        self.source('void F() { printf("x"); }\n', "cannsim/tools/x.cc")
        self.assert_clean()

    def test_abi_headers_are_as_long_as_they_are(self):
        lines = "int F(void);\n" * 500
        self.write("cannsim/include/acl/x.h",
                   header("BELAY_CANNSIM_INCLUDE_ACL_X_H_", lines))
        self.assert_clean()

    # Text.

    def test_text(self):
        for body in ("int x;\t\n", "int\tx;\n", "int x; \n", "int x;\r\n",
                     "int x;"):
            with self.subTest(body):
                self.source(body)
                status, out = self.run_check()
                self.assertEqual(status, 1)
                self.assertIn("src/base/x.cc:2: text: ", out)

    def test_data_may_look_as_it_likes(self):
        self.write("tests/cases/a/input.txt", "a \tb\r\n")
        self.write("data/x.bin", b"\xff\xfe\t ")
        self.assert_clean()

    def test_paths_of_a_machine(self):
        for path in ("/wo" + "rk/x", "/ro" + "ot/x", "/ho" + "me/me/x",
                     "https://py" + "pi.org"):
            with self.subTest(path):
                self.write("docs/x.md", f"see {path}\n")
                self.assert_found("docs/x.md:1", "machine")

    def test_other_paths(self):
        self.write("docs/x.md", "see net/wo" "rk/x and ~/ro" "ot/x\n")
        self.assert_clean()

    def test_license(self):
        self.write("src/base/x.cc", "int x;\n")
        self.assert_found("src/base/x.cc:1", "license")

    def test_license_of_a_script(self):
        self.write("scripts/x", "#!/bin/sh\n" + SPDX.replace("//", "#"))
        self.assert_clean()
        self.write("scripts/x", "#!/bin/sh\n")
        self.assert_found("scripts/x:1", "license")

    def test_guard(self):
        self.write("src/base/x.h", header("BELAY_X_H_"))
        self.assert_found("src/base/x.h:1", "guard")

    def test_guard_that_highway_toggles(self):
        self.write("src/base/x-inl.h", SPDX +
                   "#if defined(BELAY_BASE_X_INL_H_) == "
                   "defined(HWY_TARGET_TOGGLE)\n#endif\n")
        self.assert_clean()

    # Exceptions.

    def test_exception(self):
        self.source('void F() { printf("x"); }\n')
        self.write("scripts/tree_exceptions.txt",
                   "# why\nsrc/base/x.cc printing a test of it\n")
        self.assert_clean()

    def test_exception_for_one_function(self):
        self.source("void F() {\n" + "  G();\n" * 100 + "}\n")
        self.write("scripts/tree_exceptions.txt",
                   "src/base/x.cc:F function-lines a test of it\n")
        self.assert_clean()

    def test_exception_that_excuses_nothing(self):
        self.write("scripts/tree_exceptions.txt",
                   "src/base/x.cc printing a test of it\n")
        self.assert_found("scripts/tree_exceptions.txt:1", "exceptions")

    def test_exception_without_reason(self):
        self.write("scripts/tree_exceptions.txt", "src/base/x.cc printing\n")
        self.assert_found("scripts/tree_exceptions.txt:1", "exceptions")


class ShapeTest(unittest.TestCase):

    def shape(self, code):
        return [(f.name, f.n_lines, f.n_params, f.depth)
                for f in cpp_shape.functions(textwrap.dedent(code))]

    def test_kinds_of_functions(self):
        self.assertEqual(self.shape("""\
            namespace a { namespace {
            class X : public Y<int> {
             public:
              explicit X(int a) : a_(a), b_{a}, c_(F({1, 2})) {}
              X& operator=(const X&) { return *this; }
              bool operator()(int, int) const noexcept { return true; }
              bool operator<(const X& x) const { return a_ < x.a_; }
              ~X() override {}
              int a_ = 1, b_{2};
              std::function<void(int)> f_{nullptr};
            };
            enum class E : int { kA, kB };
            constexpr int kTable[] = {1, 2, 3};
            template <typename T, int N = (3 > 2)>
            std::map<int, T> X<T>::Get(std::map<int, T> m, T (*f)(int, int)) {
              return m;
            }
            auto G() -> std::vector<int> { return {}; }
            auto h = [](int x) { return x; };
            int I(void) { return 1'000'000; }
            } }  // namespace
            TEST(Suite, Name) { EXPECT_TRUE(true); }
            """), [
                ("X", 1, 1, 0), ("operator=", 1, 1, 0),
                ("operator()", 1, 2, 0), ("operator<", 1, 1, 0),
                ("~X", 1, 0, 0), ("X<T>::Get", 3, 2, 0), ("G", 1, 0, 0),
                ("auto", 1, 0, 0), ("I", 1, 0, 0),
                ("TEST(Suite, Name)", 1, 2, 0)])

    def depth(self, body):
        return self.shape("void F() {\n" + body + "\n}\n")[0][3]

    def test_depth(self):
        for body, depth in (
                ("if (a) { b(); } else if (c) { d(); } else { e(); }", 1),
                ("for (;;) for (;;) { a(); }", 2),
                ("for (;;) if (a) { b(); } else { c(); }", 2),
                ("for (;;) x(); for (;;) y(); while (a) z();", 1),
                ("if (a) return; if (b) return;", 0),
                ("do { a(); } while (b); do { c(); } while (d);", 1),
                ("switch (a) { case 1: { b(); } default: c(); }", 1),
                ("Run([&](int i) { for (;;) { a(); } });", 2),
                ("auto f = [&] { a(); }; auto g = [](int x) -> int { b(); };",
                 1),
                ("std::vector<int> v = {{1}, {2}}; F({{{1}}}); int x{3};", 0),
                ("struct P { int a; }; P p{1};", 0),
                ("if (const auto x = F({1}); x) { g(); }", 1),
                ('const char* s = R"({ { { {)"; char c = \'{\'; // {', 0)):
            with self.subTest(body):
                self.assertEqual(self.depth(body), depth)

    def test_both_branches_of_a_condition_open_a_brace(self):
        self.assertEqual(self.shape("""\
            #ifdef A
            void F(int a) {
            #else
            void F() {
            #endif
            }
            void G() {}
            """), [("F", 5, 1, 0), ("G", 1, 0, 0)])


if __name__ == "__main__":
    unittest.main()
