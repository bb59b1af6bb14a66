# SPDX-License-Identifier: Apache-2.0
"""Finds the functions of a C++ file and measures them, without a compiler.

Good enough for length, parameters and nesting of code in Google style; not a
parser. Code in unbalanced #else branches is passed over.
"""

import collections
import re

Token = collections.namedtuple("Token", "kind text line")
Function = collections.namedtuple(
    "Function", "name line n_lines n_params depth depth_line extern_c")

_LEXER = re.compile(
    r"""
      (?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)
    | (?P<raw>(?:u8|[uUL])?R"(?P<delim>[^\s()\\]{0,16})\(.*?\)(?P=delim)")
    | (?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
    | (?P<char>(?:u8|[uUL])?'(?:\\.|[^'\\\n])*')
    | (?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)
    | (?P<word>[A-Za-z_]\w*)
    | (?P<directive>(?m:^)[ \t]*\#(?:\\\n|/\*.*?\*/|[^\n/]|/(?!/))*)
    | (?P<op>::|->|<<=|<=>|==|!=|<=|>=|&&|\|\||[-+*/%&|^]=|\+\+|--|\.\.\.|[^\s\w])
    """, re.VERBOSE | re.DOTALL)

_CONTROL = {"if", "for", "while", "switch", "catch"}
_LOOPS = {"for", "while", "switch"}
_TYPES = {"class", "struct", "union", "enum"}
_ACCESS = {"public", "private", "protected"}
_NOT_NAMES = {"alignas", "noexcept", "decltype", "requires", "explicit",
              "__attribute__", "__declspec", "throw", "defined", "sizeof"}
_OPEN = {"(": ")", "[": "]", "{": "}"}


def tokenize(text):
    """All tokens; comments, literals and directives are one token each."""
    tokens = []
    line = 1
    position = 0
    for match in _LEXER.finditer(text):
        line += text.count("\n", position, match.start())
        position = match.start()
        kind = match.lastgroup if match.lastgroup != "delim" else "raw"
        if match.group("raw") is not None:
            kind = "raw"
        tokens.append(Token(kind, match.group(), line))
    return tokens


def code_lines(text):
    """(line, text) with comments and the insides of literals blanked."""

    def blank(match):
        if match.group("comment") is not None:
            return re.sub(r"[^\n]", " ", match.group())
        for kind in ("raw", "string", "char"):
            if match.group(kind) is not None:
                quote = "'" if kind == "char" else '"'
                inner = re.sub(r"[^\n]", " ", match.group())
                return quote + inner[1:-1] + quote
        return match.group()

    return list(enumerate(_LEXER.sub(blank, text).split("\n"), 1))


def _drop_unbalanced_branches(tokens):
    """Removes directives, and #else branches that upset the braces."""
    kept = []
    open_ifs = []  # [start of this branch in kept, is it the first]

    def close_branch():
        start, first = open_ifs[-1]
        balance = sum({"{": 1, "}": -1}.get(t.text, 0) for t in kept[start:])
        if not first and balance != 0:
            del kept[start:]

    for token in tokens:
        if token.kind == "comment":
            continue
        if token.kind != "directive":
            kept.append(token)
            continue
        word = re.match(r"\s*#\s*(\w*)", token.text).group(1)
        if word in ("if", "ifdef", "ifndef"):
            open_ifs.append([len(kept), True])
        elif word in ("else", "elif") and open_ifs:
            close_branch()
            open_ifs[-1] = [len(kept), False]
        elif word == "endif" and open_ifs:
            close_branch()
            open_ifs.pop()
    return kept


def _angle_step(tokens, i):
    """What token i adds to the depth of template angles."""
    text = tokens[i].text
    before = tokens[i - 1] if i else None
    if text == "<" and before and before.kind == "word" and (
            before.text != "operator"):
        return 1
    if text == ">" and before and before.text not in ("operator", "-"):
        return -1
    return 0


class _Head:
    """The tokens before a "{" outside functions, and what they declare."""

    def __init__(self, tokens):
        self.tokens = self._strip(tokens)
        self.params = None       # index range of the parameter list
        self.has_initializers = False
        self.assigned = None     # index of a top-level "="
        self._scan()

    @staticmethod
    def _strip(tokens):
        while True:
            if len(tokens) > 1 and tokens[0].text in _ACCESS and (
                    tokens[1].text == ":"):
                tokens = tokens[2:]
            elif len(tokens) > 1 and tokens[0].text == "template" and (
                    tokens[1].text == "<"):
                angle = paren = 0
                for i, token in enumerate(tokens):
                    paren += {"(": 1, ")": -1}.get(token.text, 0)
                    if paren == 0:
                        angle += {"<": 1, ">": -1}.get(token.text, 0)
                    if i > 0 and angle == 0:
                        break
                tokens = tokens[i + 1:]
            else:
                return tokens

    def _scan(self):
        depth = angle = 0
        start = None
        for i, token in enumerate(self.tokens):
            text = token.text
            if text in "([{":
                if depth == 0 and angle <= 0 and text == "(" and (
                        self.params is None and self._names(i)):
                    start = i
                depth += 1
            elif text in ")]}":
                depth -= 1
                if depth == 0 and start is not None and self.params is None:
                    self.params = (start, i)
            elif depth == 0:
                angle = max(0, angle + _angle_step(self.tokens, i))
                before = self.tokens[i - 1].text if i else ""
                if text == ":" and self.params is not None:
                    self.has_initializers = True
                elif text == "=" and before != "operator" and angle == 0:
                    self.assigned = i if self.assigned is None else (
                        self.assigned)

    def _names(self, i):
        """Whether the "(" at i follows something that can name a function."""
        if i == 0:
            return False
        before = self.tokens[i - 1]
        if before.kind == "word":
            return before.text not in _NOT_NAMES and (
                before.text != "operator")
        return any(t.text == "operator" for t in self.tokens[max(0, i - 3):i])

    def kind(self):
        if not self.tokens:
            return "block"
        words = [t.text for t in self.tokens]
        if "namespace" in words[:2]:
            return "scope"
        if words[0] == "extern" and len(words) == 2:
            return "extern_c"
        if self.assigned is not None:
            follows = words[self.assigned + 1:self.assigned + 2]
            return "function" if follows == ["["] else "init"
        leading = [w for w in words if w not in ("typedef", "static", "const")]
        if leading and leading[0] in _TYPES:
            return "scope"
        if self.params is None:
            return "init"
        last = self.tokens[-1]
        if self.has_initializers and (last.kind == "word" or
                                      last.text == ">"):
            return "init"
        return "function"

    def name(self):
        if self.params is None:
            return self.tokens[0].text
        start, end = self.params
        words = [t.text for t in self.tokens]
        first = start - 1
        if "operator" in words[max(0, start - 3):start]:
            while words[first] != "operator":
                first -= 1
        if first > 0 and words[first - 1] == "~":
            first -= 1
        while first > 1 and words[first - 1] == "::":
            first -= 2
            if words[first] == ">":  # X<T>::F
                while first > 0 and words[first] != "<":
                    first -= 1
                first -= 1
        name = "".join(t.text for t in self.tokens[first:start])
        if name.startswith(("TEST", "TYPED_TEST")):
            inside = "".join(t.text for t in self.tokens[start:end + 1])
            return name + inside.replace(",", ", ")
        return name

    def n_params(self):
        if self.params is None:
            return 0
        start, end = self.params
        inner = self.tokens[start + 1:end]
        if not inner or [t.text for t in inner] == ["void"]:
            return 0
        depth = angle = 0
        n = 1
        for i, token in enumerate(inner):
            if token.text in _OPEN:
                depth += 1
            elif token.text in ")]}":
                depth -= 1
            elif depth == 0:
                angle = max(0, angle + _angle_step(inner, i))
                n += token.text == "," and angle == 0
        return n


class _Body:
    """Walks one function body and finds its deepest nesting.

    A braced block counts, and a loop without braces; an `if` without braces
    does not (it guards one statement), nor do the braces of a case, of a
    local type or of an initializer.
    """

    def __init__(self, tokens, start):
        self.tokens = tokens
        self.stack = [("body", 0)]  # (kind, weight)
        self.depth = 0
        self.depth_line = tokens[start].line
        self.i = start
        self.loop_header_end = -1
        self.end = self._walk()

    def _push(self, kind, weight):
        self.stack.append((kind, weight))
        depth = sum(w for _, w in self.stack)
        if depth > self.depth:
            self.depth = depth
            self.depth_line = self.tokens[self.i].line

    def _end_statement(self):
        while self.stack and self.stack[-1][0] == "loop":
            self.stack.pop()

    def _brace_weight(self, i):
        before = self.tokens[i - 1]
        parent = self.stack[-1][0]
        if before.text in (")", "]", "else", "do", "try", "mutable",
                           "noexcept"):
            # `for (...) {`: the braces carry the weight of the loop.
            if parent == "loop" and self.loop_header_end == i - 1:
                self.stack[-1] = ("loop", 0)
            return 1
        if before.text in (";", "}", "{"):
            return None if parent == "init" else 1
        if before.text == ":":
            return 0
        if self._is_local_type(i):
            return 0
        return 1 if self._is_trailing_return(i) else None

    def _is_local_type(self, i):
        for token in reversed(self.tokens[max(0, i - 12):i]):
            if token.text in (";", "{", "}", ")", "(", "="):
                return False
            if token.text in _TYPES:
                return True
        return False

    def _is_trailing_return(self, i):
        j = i - 1
        while j > 0 and (self.tokens[j].kind == "word" or
                         self.tokens[j].text in ("::", "<", ">", "*", "&",
                                                 ",")):
            j -= 1
        return self.tokens[j].text == "->" and self.tokens[j - 1].text == ")"

    def _walk(self):
        parens = []  # loop headers wait for their ")"
        tokens = self.tokens
        while self.i + 1 < len(tokens):
            self.i += 1
            text = tokens[self.i].text
            if text == "(":
                parens.append(self._control_word())
                self.stack.append(("paren", 0))
            elif text == ")":
                self._close("paren")
                word = parens.pop() if parens else None
                if word in _LOOPS and not self._ends_do_while(word):
                    self._push("loop", 1)
                    self.loop_header_end = self.i
            elif text == "{":
                weight = self._brace_weight(self.i)
                if weight is None:
                    self.stack.append(("init", 0))
                else:
                    self._push("block", weight)
            elif text == "}":
                kind = self._close("block", "init", "body")
                if not self.stack:
                    return self.i
                if kind == "block" and not self._followed_by("else"):
                    self._end_statement()
            elif text == ";" and self.stack[-1][0] == "loop":
                self._end_statement()
        return self.i

    def _close(self, *kinds):
        while self.stack:
            kind, _ = self.stack.pop()
            if kind in kinds:
                return kind
        return None

    def _control_word(self):
        before = self.tokens[self.i - 1].text
        if before == "constexpr":
            before = self.tokens[self.i - 2].text
        return before if before in _CONTROL else None

    def _ends_do_while(self, word):
        return word == "while" and self._followed_by(";")

    def _followed_by(self, text):
        follows = self.tokens[self.i + 1:self.i + 2]
        return bool(follows) and follows[0].text == text


def functions(text):
    """Every function with a body, in order."""
    tokens = _drop_unbalanced_branches(tokenize(text))
    found = []
    scopes = []
    start = i = depth = 0
    while i < len(tokens):
        word = tokens[i].text
        if word in ("(", "["):
            depth += 1
        elif word in (")", "]"):
            depth -= 1
        elif word == ";" and depth <= 0 and scopes[-1:] != ["init"]:
            start, depth = i + 1, 0
        elif word == "}":
            kind = scopes.pop() if scopes else "scope"
            if kind != "init":
                start, depth = i + 1, 0
        elif word == "{" and depth > 0:
            scopes.append("init")
        elif word == "{":
            head = _Head(tokens[start:i])
            kind = head.kind()
            if scopes and scopes[-1] == "init":
                kind = "init"
            if kind == "function":
                body = _Body(tokens, i)
                first = head.tokens[0].line
                found.append(Function(
                    head.name(), first, tokens[body.end].line - first + 1,
                    head.n_params(), body.depth, body.depth_line,
                    "extern_c" in scopes or head.tokens[0].text == "extern"))
                i = body.end
                start = i + 1
            else:
                scopes.append(kind)
                if kind != "init":
                    start = i + 1
        i += 1
    return found
