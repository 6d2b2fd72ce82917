# ruff: noqa: E501, PLR0911, PLR0912 - a grammar is a table of texts, one alternative a branch
"""Random functions and kernels of C++ by a grammar with every construct that a reader may get wrong."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from random import Random

from tests.attack.sources_of import Source

_TYPES = ("int", "const int", "auto", "int", "unsigned", "unsigned int", "uint32_t", "long", "short", "unsigned char",
          "int8_t", "bool", "size_t", "uint16_t", "char", "static int", "long long", "float", "I", "int32_t")  # fmt: skip
_HEAD = "#include <hip/hip_runtime.h>\n"
_STUB = """
#include <cstdint>
#include <cstddef>
#include <initializer_list>
namespace std { template <typename T> void exchange_(T& a, T& b) { T c = a; a = b; b = c; } }
template <typename T> static T min(T a, T b) { return a < b ? a : b; }
template <typename T> static T max(T a, T b) { return a > b ? a : b; }
struct Dim { unsigned x, y, z; };
static Dim blockIdx, gridDim;
struct FastDivmod {
  int divisor;
  int divmod(int& r, int x) const { r = x % divisor; return x / divisor; }
  unsigned divmod(unsigned& r, unsigned x) const { r = x % divisor; return x / divisor; }
  void operator()(int& q, int& r, int x) const { q = x / divisor; r = x % divisor; }
  int div(int x) const { return x / divisor; }
  int rem(int x) const { return x % divisor; }
};
static const struct { FastDivmod by, of; } params = {{8}, {3}};
struct Two { int w; };
static const Two one = {2}, two = {4};
#define __global__
#define __device__
#define __forceinline__ inline
"""


class _Maker:
    """Draws one source; ``macros`` and ``helpers`` are what stands above the function."""

    def __init__(self, draw: Random):
        self.draw = draw
        self.above: list[str] = []
        self.fixed: set[str] = set()  # names that may not be assigned
        self.returns = True
        self.count = 0
        self.text = ""  # locals that hide what stands above

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def literal(self) -> str:
        return self.draw.choice(["1", "2", "3", "4", "8", "5", "7", "8u", "0", "16", "010", "0x3", "1'0"])

    def positive(self) -> str:
        return self.draw.choice(["1", "2", "3", "4", "8", "5", "7", "8u", "16"])

    def value(self, names: list[str], depth: int = 0) -> str:
        """An expression that divides by nothing that is 0."""
        draw = self.draw
        if depth > 2 or draw.random() < 0.3:
            return draw.choice(names) if draw.random() < 0.8 else self.literal()
        a, b = self.value(names, depth + 1), self.value(names, depth + 1)
        kind = draw.randrange(26)
        if kind < 4:
            return f"{a} {draw.choice('/%')} {self.positive()}"
        if kind < 8:
            return f"({a} + {b})"
        if kind < 10:
            return f"({a} - {b})"
        if kind < 12:
            return f"{a} * {self.positive()}"
        if kind < 14:
            return f"({self.condition(names, depth + 1)} ? {a} : {b})"
        if kind == 14:
            return f"min((int)({a}), (int)({b}))"
        if kind == 15:
            return f"max<int>({a}, {b})" if draw.random() < 0.3 else f"max(int({a}), int({b}))"
        if kind == 16:
            return f"({a} {draw.choice(['&', '|', '^', '>>', '<<'])} {self.positive()})"
        if kind == 17:
            cast = draw.choice(["int", "short", "unsigned", "uint8_t", "long", "int8_t", "bool", "uint32_t"])
            return draw.choice([f"({cast})({a})", f"static_cast<{cast}>({a})", f"{cast}({a})"]).replace("long(", "int(")
        if kind == 18:
            return f"{self.macro()}({a})"
        if kind == 19 and draw.random() < 0.3:  # a record of another, under the name of the one
            name = f"f{len(self.above)}"
            self.above.append(f"__device__ int {name}(int a, Two one) {{ return a / one.w; }}\n")
            return f"{name}({a}, {draw.choice(['one', 'two'])})"
        if kind == 19:
            return f"{self.helper()}({a}, {draw.choice(names)})"
        if kind == 20:
            return f"{a} / {draw.choice([self.constant(), self.constant(), 'one.w'])}"
        if kind == 21:
            return f"-({a})" if draw.random() < 0.5 else f"~{draw.choice(names)}"
        if kind == 22:
            return f"({a}, {b})"
        if kind == 23:
            return f"({self.condition(names, depth + 1)})"
        if kind == 24:
            return f"({draw.choice(names)} / max(1, (int)({b})))"
        return f"({self.condition(names, depth + 1)} && {self.condition(names, depth + 1)})"

    def condition(self, names: list[str], depth: int = 0) -> str:
        op = self.draw.choice(["<", "<=", ">", ">=", "==", "!="])
        return f"{self.value(names, depth + 1)} {op} {self.value(names, depth + 1)}"

    def macro(self) -> str:
        name = f"M{len(self.above)}"
        body = self.draw.choice(["x / 8", "(x) / 8", "((x) % 4 + 1)", "x + x", "(x) * 2 - 1", "min(x, 7)", "x", "-x"])
        self.above.append(f"#define {name}(x) {body}\n")
        return name

    def constant(self) -> str:
        name = f"C{len(self.above)}"
        self.above.append(self.draw.choice([
            f"#define {name} 4 + 4\n", f"#define {name} (4 + 4)\n", f"#define {name} 8\n",
            f"constexpr int {name} = 8;\n", f"const int {name} = 4 * 2;\n", f"constexpr unsigned {name} = 3;\n",
            f"#ifdef OTHER\n#define {name} 4\n#else\n#define {name} 8\n#endif\n",
            f"#ifndef {name}\n#define {name} 8\n#endif\n", f"#define {name} 4\n#undef {name}\n#define {name} 5\n",
            f"#if 0\n#define {name} 3\n#else\n#define {name} 6\n#endif\n", f"enum {{ {name} = 5 }};\n",
            f"constexpr uint8_t {name} = 200 + 100;\n", f"int {name} = 6;\n",
            f"#define {name} \\\n 5\n", f"#define {name} 8 /* a\n */ - 1\n", f"#def\\\nine {name} 6\n",
            f"#if ~0 == -1\n#define {name} 7\n#else\n#define {name} 8\n#endif\n",
            f"#if -1 < 0u || __cplusplus > 1\n#define {name} 5\n#else\n#define {name} 8\n#endif\n",
            f"#if !0 + 1 == 2 && (7 & 4 == 4)\n#define {name} 2\n#else\n#define {name} 9\n#endif\n",
            f"#define {name} (6 - 1 ? 5 : 4)\n", f"constexpr int {name} = (3 - 5 + 8) % 5 << 1;\n",
        ]))  # fmt: skip
        return name

    def helper(self) -> str:
        name = f"f{len(self.above)}"
        kind = self.draw.choice(["int", "int", "int", "unsigned", "short", "auto", "auto", "bool", "uint8_t"])
        a = self.draw.choice(["int a", "int a", "unsigned a", "short a", "const int& a", "int8_t a", "int a", "auto a"])
        body = self.draw.choice(["return a / 8;", "if (a > b) return a; return b;", "return a + b;", "return a % 8;",
                                 "int b2 = b; { int b2 = 3; (void)b2; } return b2;", "b = b / 2; return a + b;",
                                 "return a / CONSTANT + b;"])  # fmt: skip
        body = body.replace("CONSTANT", self.constant()) if "CONSTANT" in body else body
        name = f"f{len(self.above)}"
        text = f"__device__ {kind} {name}({a}, int b) {{ {body} }}\n"
        if self.draw.random() < 0.1:
            text += f"__device__ int {name}(long a, int b) {{ return int(a) + b + 1; }}\n"
        if self.draw.random() < 0.1:
            text = f"template <int W = 2>\n{text}"
        if self.draw.random() < 0.1:
            text = text.replace(f"{kind} {name}", f"auto {name}").replace("b) {", f"b) -> {kind} {{")
        self.above.append(text)
        return name

    def changer(self) -> str:
        """Function that changes what it is given."""
        name = f"g{len(self.above)}"
        self.above.append(self.draw.choice([
            f"__device__ void {name}(int& v, int w) {{ v = w; }}\n",
            f"__device__ void {name}(int& v, int w) {{ v += w; }}\n",
            f"__device__ void {name}(int& v, int w) {{ if (w > 3) v = w / 2; }}\n",
            f"__device__ int {name}(int& v, int w) {{ v = v + 1; return w; }}\n",
            f"__device__ void {name}(const int& v, int& w) {{ w = v + 1; }}\n",
            f"template <typename T> __device__ void {name}(T& v, int w) {{ v = w; }}\n",
            f"__device__ void {name}(int* v, int w) {{ *v = w; }}\n",
            f"__device__ void {name}(int* v, int w) {{ if (w > 2) *v = *v / 2 + w; }}\n",
            f"__device__ void {name}(int* v, int w) {{ int* u = v; *v = 3; *u = w; }}\n",
            f"__device__ int {name}(int* v, int w) {{ *v = w / 2; return *v; }}\n",
            f"__device__ void {name}(int (&v)[1], int w) {{ v[0] = w; }}\n",
            f"__device__ void {name}(int& v, const int& w) {{ v = v - w; v = v + w; }}\n",
            f"__device__ void {name}(int const& v, int w) {{ const_cast<int&>(v) = w; }}\n",
            f"using R{name} = int*;\n__device__ void {name}(int const& v, int w) {{ *(R{name})&v = w; }}\n",
            f"template <class... T> __device__ void {name}(T&&... v) {{ ((v = 1), ...); }}\n",
            f"__device__ int& {name}(int& v, int) {{ return v; }}\n",
        ]))  # fmt: skip
        return name

    def statements(self, names: list[str], depth: int) -> str:
        return "".join(self.statement(names, depth) for _ in range(self.draw.randrange(1, 4)))

    def statement(self, names: list[str], depth: int) -> str:  # noqa: PLR0915 - a grammar is a table
        draw = self.draw
        own = [name for name in names if name.startswith("v")]
        kind = draw.randrange(26)
        target = draw.choice(own) if own else ""
        if kind < 8 or not own:
            name = target if own and depth and draw.random() < 0.4 else self.name()  # one of an outer scope, shadowed
            of_type = draw.choice(_TYPES)
            value = self.value(names)
            if of_type == "I" and "using I" not in "".join(self.above):
                self.above.insert(0, f"using I = {draw.choice(['int', 'short', 'unsigned', 'int32_t'])};\n")
            text = f"{of_type} {name} = {value};\n"
            names.append(name)
            if "const" in of_type or of_type in ("float",):
                names[-1] = name
                self.fixed.add(name)
            return text
        if target in self.fixed:
            target = ""
        inner = list(names)
        made = ""
        if kind < 11 and target:
            made = f"{target} {draw.choice(['=', '+=', '-=', '*=', '='])} {self.value(names)};\n"
        elif kind == 11 and target:
            made = draw.choice([f"{target}++;\n", f"--{target};\n", f"{target} /= 2;\n", f"{target} %= 4;\n"])
        elif kind < 15:
            other = f" else {{ {self.statements(list(names), depth + 1)} }}" if draw.random() < 0.4 else ""
            made = f"if ({self.condition(names)}) {{ {self.statements(inner, depth + 1)} }}{other}\n"
        elif kind == 15:
            made = f"if ({self.condition(names)}) return {self.value(names)};\n" if self.returns else ""
        elif kind == 16:
            test = draw.choice(["#if 0", "#if 1", "#if defined(__gfx90a__)", "#if C0 > 2", "#if defined(OTHER) || 1",
                                "#ifdef __gfx942__", "#ifndef __gfx942__", "#if __CUDA_ARCH__ < 900"])  # fmt: skip
            here = self.statements(list(names), 2)
            if draw.random() < 0.5:  # both branches may declare a name
                name = self.name()
                one, other = (
                    f"{draw.choice(['int', 'const int', 'auto'])} {name} = {self.value(names)};\n" for _ in "ab"
                )
                here, names[:] = (
                    f"{here}{one}#else\n{draw.choice([other, other, '#error', '{ int q; (void)q; }'])}\n",
                    [*names, name],
                )
                self.fixed.add(name)
            if draw.random() < 0.2:
                here += f"#elif defined(__gfx90a__)\n{self.statements(list(names), 2)}" if "#else" not in here else ""
            made = f"{test}\n{here}#endif\n"
            if draw.random() < 0.1 and target:
                made = f"if ({self.condition(names)}) {{ {target} = 3;\n{test}\n}} else {{\n#endif\n{target} = 5; }}\n"
        elif kind == 17 and target:
            name = self.name()
            made = draw.choice([
                f"auto& {name} = {target}; {name} = {self.value(names)};\n",
                f"const auto& {name} = {target};\n{target} += 1;\nint w{name} = {name};\n",
                f"auto* {name} = &{target}; *{name} += 1;\n",
                f"auto {name} = [&](int q) {{ {target} = q; }}; {name}(3);\n",
                f"auto {name} = [=](int q) {{ return q + {target}; }}; {target} += {name}(2);\n",
                f"auto {name} = [](int& q) {{ q = q / 2; return 1; }}; {target} += {name}({target});\n",
                f"auto {name} = [](auto& q, int w) {{ q = w; }}; {name}({target}, 2);\n",
                f"auto {name} = [](int q) {{ return q / 2; }}; {target} = {name}({target});\n",
                f"auto {name} = [](auto q) {{ return q % 8{draw.choice(['', 'u'])}; }};\n"
                f"auto w{name} = {name}({self.value(names)});\n{target} = w{name} < {self.value(names)};\n",
                f"auto {name} = [](unsigned q) {{ return q < 5; }};\nauto w{name} = {name}({target});\nw{name} += 2;\n"
                f"{target} = w{name};\n",
                f"auto {name} = [&q = {target}] {{ q = 1; }}; {name}();\n",
                f"auto {name} = [](int q) {{ return q % 5; }}; {{ auto {name} = [](int q) {{ return q % 3; }}; "
                f"{target} = {name}({target}); }} {target} = {name}({target}) + 5;\n",
                f"auto {name} = [](int q, int w = 3) {{ if (q > w) return q / 2; return w; }}; {target} = {name}({target});\n",
            ])  # fmt: skip
        elif kind == 18 and target:
            name = self.changer()
            made = f"{name}({'&' * ('* v' in self.above[-1])}{target}, {self.value(names)});\n"
            if "[1]" in self.above[-1]:
                made = f"int a{name}[1]; {name}(a{name}, {self.value(names)}); {target} = a{name}[0];\n"
            made = made if "const int& v" not in self.above[-1] else f"{self.above[-1].split('void ')[1].split('(')[0]}(" \
                f"{draw.choice(names)}, {target});\n"  # fmt: skip
        elif kind == 19 and target:
            name = self.name()
            body = draw.choice(
                [f"{target} += {name};", f"if ({name} == 2) break; {target} += 1;", f"{target} = {name};"]
            )
            step = draw.choice([f"{name}++", f"{name} += 2", f"++{name}"])
            made = f"for (int {name} = 0; {name} {draw.choice(['<', '<='])} {self.positive()}; {step}) {{ {body} }}\n"
        elif kind == 20 and target:
            made = f"{{ {self.statements(inner, depth + 1)} }}\n"
        elif kind == 21 and target:
            made = draw.choice([
                f"do {{ {target} += 1; }} while (0);\n", f"switch ({target} % 3) {{ case 1: {target} = 4; break; default: ; }}\n",
                f"while ({target} > 40) {target} /= 2;\n", f"asm volatile(\"\" : \"+r\"({target}));\n",
                f"(void){target};\n", f"std::exchange_({target}, {target});\n",
                f"if (int q{self.count} = {target} - 3; q{self.count} > 0) {target} = q{self.count};\n",
                f"if (int {target} = {self.positive()}; {target} > 1) {{ {own[0] if own[0] not in self.fixed else target} = {target}; }}\n",
                f"if (int {target} = {self.positive()}) {{ {own[0] if own[0] not in self.fixed else target} = {target}; }}\n",
                f"({target})++;\n", f"({self.condition(names)} ? {target} : {target}) = 2;\n", f"*&{target} = 3;\n",
                f"{self.condition(names)} && ({target} = 3);\n", f"{target} = 4, {target} += 1;\n",
            ])  # fmt: skip
        elif kind == 22 and target:
            name = self.name()
            call = f"{self.helper()}({target}, {target}++)"
            made = f"int {name} = {draw.choice([f'{target}++', f'({target} = 3)', f'{target} += 2', call])};\n"
            made = draw.choice([made, made, f"int {name}({target} = 3);\n", f"int {name}{{{target} = 3}};\n"])
        elif kind == 23 and target:
            made = (
                f"int& {self.name()} = {target};\n"
                if draw.random() < 0.3
                else f"[[maybe_unused]] int {self.name()} = 3;\n"
            )
        elif (
            kind == 24
            and target
            and (own_names := re.findall(r"const\w* (?:int|unsigned) (C\d+)", "".join(self.above)))
        ):
            name = draw.choice(own_names)  # which functions above read, and the caller has for another
            made = f"int {name} = 2; {target} += {name};\n" if f"int {name} = 2" not in self.text else ""
            self.text += made
        elif kind == 24 and target and draw.random() < 0.5:  # a name of two scopes, and one that a reader may make
            constant = f"{target}{draw.choice(['', '_2', '_3'])}"
            if f"int {constant} =" not in "".join(self.above):
                self.above.append(f"constexpr int {constant} = 6;\n")
            made = f"{{ int {target} = 2; {target} += ::{constant}; }} {target} += ::{constant};\n"
        elif kind >= 24 and target:
            made = self.divided(target, names)
        return made

    def divided(self, target: str, names: list[str]) -> str:
        """Statements with an object that divides."""
        if "FastDivmod" not in "".join(self.above):
            self.above.insert(0, "struct Params { FastDivmod by, of; };\n")
        q, r = self.name(), self.name()
        x = self.draw.choice(names)
        names += [q, r]
        kind = self.draw.choice(["int", "int", "unsigned"])
        start = f"{kind} {q} = 0, {r} = {self.positive()};\n"
        forms = [
            f"{q} = params.by.divmod({r}, {x});\n", f"params.by({q}, {r}, {x});\n",
            f"{q} = params.of.divmod({r}, params.by.divmod({r}, {x}));\n", f"{r} = params.by.divmod({r}, {r});\n",
            f"{q} = params.by.divmod({r}, {x}) + {r};\n", f"{q} = params.by.div({x}) * params.by.divisor;\n",
            f"if ({x} > 9) {{ {q} = params.of.divmod({r}, {x}); }}\n", f"{q} = params.of.rem({x});\n",
            f"auto l{q} = [&]() {{ return {r}; }}; {q} = params.of.divmod({r}, {x}); {target} = l{q}();\n",
            f"{q} = {x} > 4 && params.by.divmod({r}, {x}) > 1;\n", f"{q} = {x} > 4 ? params.by.divmod({r}, {x}) : {r};\n",
            f"for (int k = 0; k < 3; k++) {q} += params.by.divmod({r}, {x}) + k;\n",
        ]  # fmt: skip
        return start + self.draw.choice(forms) + f"{target} = {q} * 2 + {r};\n"


def function(draw: Random) -> Source:
    """``int remap(pid, num_pids)`` with random statements."""
    make = _Maker(draw)
    make.fixed = set()
    of_pid = draw.choice(
        ["int", "int", "int", "const int", "unsigned", "short", "int32_t", "uint32_t", "long", "const int&", "bool"]
    )
    result = draw.choice(["int", "int", "int", "unsigned", "auto", "short", "long", "int32_t"])
    names = ["pid", "num_pids"]
    body = "".join(make.statement(names, 0) for _ in range(draw.randrange(2, 7)))
    start = draw.choice(["", "", "const int q = num_pids / 8, r = num_pids % 8, xcd = pid % 8;\n"])
    last = draw.choice([make.value(names), make.value(names), names[-1]])
    last = f"xcd * q + min(xcd, r) + pid / 8 + 0 * ({last})" if start and draw.random() < 0.5 else last
    if result == "auto":
        last = f"int({last})"
    text = f"__device__ {result} remap({of_pid} pid, int num_pids) {{\n{start}{body}return {last};\n}}\n"
    return Source(_HEAD + "".join(make.above) + text, "remap", "c", ".hip", {"by": "8", "of": "3", "w": "2"})


# Functions that take the address or the tile: `AT` is an offset of m and n, or less; and how each is called to store.
_CALLEES = (
    ("void put(float& x) { x += 1; }", "put(c[AT]);"),
    ("template <class T> void put(T& x) { x += 1; }", "put(c[AT]);"),
    ("template <class T> void put(T&& x) { x = x + 1; }", "put(c[AT]);"),
    ("void put(float* x) { *x += 1; }", "put(&c[AT]);"),
    ("void put(float& x) { x++; }\nvoid both(float& x, float) { put(x); }", "both(c[AT], 2);"),
    ("float put(float& x) { x += 1; return x; }", "float y = put(c[AT]);\n(void)y;"),
    ("float put(float* x) { *x += 1; return 1; }", "const float y = 2 * put(c + AT);\n(void)y;"),
    ("int put(float* c, int m, int n, int w) { c[AT] += 1; return 1; }", "if (put(c, pid_m, pid_n, num_pid_n)) { }"),
    ("void put(float* c, int m, int n, int w) { c[AT] += 1; }", "put(c, pid_m, pid_n, num_pid_n);"),
    ("float* put(float* c, int m, int n, int w) { return c + AT; }", "*put(c, pid_m, pid_n, num_pid_n) += 1;"),
    ("auto put(float* c, int m, int n, int w) { return c + AT; }", "put(c, pid_m, pid_n, num_pid_n)[0] += 1;"),
    ("float& put(float* c, int m, int n, int w) { return c[AT]; }", "put(c, pid_m, pid_n, num_pid_n) += 1;"),
    ("int put(int m, int n, int w) { return AT; }", "c[put(pid_m, pid_n, num_pid_n)] += 1;"),
    ("int put(int m, int n, int w) { n += m; return AT - m; }", "c[put(pid_m, pid_n, num_pid_n)] += 1;"),
    ("int put(int m, int n, int w) { if (m > 1) m = 1; return AT; }", "c[put(pid_m, pid_n, num_pid_n)] += 1;"),
    ("int put(int m, int, int) { return m; }\nint put(unsigned m, int n, int w) { return AT; }",
     "c[put((unsigned)pid_m, pid_n, num_pid_n)] += 1;"),
    ("struct Out { float* c; int w; void put(int m, int n) { c[AT] += 1; } };",
     "Out out{c, num_pid_n};\nout.put(pid_m, pid_n);"),
    ("", "auto put = [&](int m, int n, int w) { return AT; };\nc[put(pid_m, pid_n, num_pid_n)] += 1;"),
    ("", "auto put = [](float& x) { x += 1; };\nput(c[AT]);"),
    ("", "float& x = c[AT];\nx += 1;"),
    ("float* put(float* c, int m) { return c + m; }", "float* d = put(c, AT);\n*d += 1;"),
    ("float* put(float* c, int m) { return c + m; }", "auto d = put(c, pid_m);\nd[pid_n] += 1;"),
    ("template <class P> void put(P d, int n) { d[n] += 1; }", "put(c + pid_m, pid_n);"),
    ("template <int Z> int put(int m, int n, int w) { return m * w * Z + n; }", "c[put<0>(pid_m, pid_n, num_pid_n)] += 1;"),
    ("struct Out { float* c; float* at(int m) { return c + m; } };", "Out out{c};\nout.at(pid_m)[pid_n] += 1;"),
)  # fmt: skip


# Stores beside the tile, or of what was changed on another way than by its name.
_BESIDE = (
    "c[pid_m, pid_n] += 1;", "float* d = c;\nd = d + pid_m;\nd[pid_n * 1] += 1;", "float* d = &c[pid_m];\nd[pid_n] += 1;",
    "float* d = c + pid_m * num_pid_n;\nd += pid_n;\n*d += 1;", "float* d = c + pid_m * num_pid_n;\nd -= pid_m;\nd[pid_n] += 1;",
    "c[pid_m * num_pid_n + pid_n] += 1;\nif (pid_m > 0) c[(pid_m - 1) * num_pid_n + pid_n] += 1;",
    "c[pid_m * num_pid_n + pid_n] += 1;\nif (pid_m > 0) c[pid_m * num_pid_n + pid_n - num_pid_n] += 1;",
    "c[pid_m * num_pid_n + pid_n] += 1;\nif (pid_m == 0) c[(num_pid_m - 1) * num_pid_n + pid_n] += 1;",
    "struct { int m, n; } t = {pid_m, pid_n};\nc[t.m * num_pid_n + t.n] += 1;",
    "struct { int m, n; } t = {pid_m, pid_n};\nt.m /= 2;\nc[t.m * num_pid_n + t.n] += 1;",
    "struct T { int m, n; };\nT t{pid_m, pid_n}, u{0, 0};\nt = u;\nc[t.m * num_pid_n + t.n] += 1;",
    "int m = pid_m;\nint& r = m;\nr /= 2;\nc[m * num_pid_n + pid_n] += 1;",
    "int m = pid_m;\nint* r = &m;\n*r /= 2;\nc[m * num_pid_n + pid_n] += 1;",
    "int m = pid_m, n = pid_n;\nstd::exchange_(m, n);\nc[m * num_pid_n + n] += 1;",
    "const int m = pid_m;\nconst int& r = m;\nc[r * num_pid_n + pid_n] += 1;",
    "pid_m > 0 && (c[pid_m * num_pid_n + pid_n] += 1);", "unsigned char m = pid_m * 64;\nc[m / 64 * num_pid_n + pid_n] += 1;",
    "float* row[1] = {c + pid_m};\nrow[0][pid_n] += 1;", "float* row[1] = {c + pid_m * num_pid_n};\nrow[0][pid_n] += 1;",
    "float* d = c + pid_m;\nfloat** e = &d;\n(*e)[pid_n] += 1;", "static float* d;\nd = c + pid_m;\nd[pid_n] += 1;",
    "float (*d)[4] = (float (*)[4])c;\nd[pid_m][pid_n] += 1;", "[&] { if (pid_m == 2) return; c[pid_m * num_pid_n + pid_n] += 1; }();",
    "c[pid_m * num_pid_n + pid_n + 1] += 1;", "c[pid_m * num_pid_n - 1 + pid_n] += 1;", "int at = pid_m * num_pid_n + pid_n;\nat--;\nc[at] += 1;",
    "constexpr int none = 0;\nc[pid_m * num_pid_n * none + pid_n] += 1;",
    "bool m = pid_m;\nc[m * num_pid_n + pid_n] += 1;", "while (pid_m == 2) return;\nc[pid_m * num_pid_n + pid_n] += 1;",
)  # fmt: skip


def _by_a_callee(draw: Random, make: _Maker) -> str:
    """Store through a function of the file, or a lambda, which may lose a part of the tile."""
    above, call = draw.choice(_CALLEES)
    at = draw.choice(["m * w + n"] * 3 + ["m / 2 * w + n", "m * w", "(m + n) * w", "m % 2 * w + n", "n"])
    here = re.sub(r"\bm\b", "pid_m", re.sub(r"\bn\b", "pid_n", re.sub(r"\bw\b", "num_pid_n", at)))
    make.above += [f"{above.replace('AT', at)}\n"] if above else []
    return call.replace("AT", at if "int m" in call else here)


def kernel(draw: Random) -> Source:
    """Kernel that stores tiles, with returns, conditions and loops that may leave some out."""
    make = _Maker(draw)
    make.fixed, make.returns = set(), False
    is_persistent = draw.random() < 0.5
    group = draw.choice([1, 2, 4])
    count = draw.choice(["num_pid_m * num_pid_n"] * 4 + ["num_pid_m * num_pid_n - 1", "num_pid_n * num_pid_m"])
    maps = draw.choice([
        "const int pid_m = id / num_pid_n, pid_n = id % num_pid_n;",
        "int pid_m = id % num_pid_m;\nint pid_n = id / num_pid_m;",
        f"int g = id / ({group} * num_pid_n) * {group};\nint rows = min(num_pid_m - g, {group});\n"
        f"int pid_m = g + id % ({group} * num_pid_n) % rows;\nint pid_n = id % ({group} * num_pid_n) / rows;",
        "const unsigned rest = num_pid_m * num_pid_n - 1 - id;\nint pid_m = rest / num_pid_n, pid_n = rest % num_pid_n;",
    ])  # fmt: skip
    maps = (
        draw.choice(["", "", "", "", "", "", "if (num_pid_n > 5) num_pid_n = 5;\n", "num_pid_m = min(num_pid_m, 5);\n"])
        + maps
    )
    names = ["id", "num_pid_m", "num_pid_n"]
    noise = make.statements(list(names), 0) if draw.random() < 0.4 else ""
    guard = draw.choice([
        "", "", "", "if (id >= num_pid_m * num_pid_n) LEAVE;", "if (pid_m >= num_pid_m) LEAVE;", "if (id > 64) LEAVE;",
        "if (pid_m >= num_pid_m - 1) LEAVE;", "if (num_pid_m < 0) LEAVE;", "if (id == 3) { LEAVE; }",
        f"if ({make.condition([*names, 'pid_m', 'pid_n'])}) LEAVE;",
    ]).replace("LEAVE", draw.choice(["continue", "continue", "break", "return"]) if is_persistent else "return")  # fmt: skip
    store = draw.choice(["c[pid_m * num_pid_n + pid_n] += 1;"] * 4 + [
        "if (pid_m < num_pid_m) c[pid_m * num_pid_n + pid_n] += 1;",
        "if (pid_m < num_pid_m - 1) { c[pid_m * num_pid_n + pid_n] += 1; }",
        "if (pid_n > 0) { c[pid_m * num_pid_n + pid_n] += 1; } else { c[pid_m * num_pid_n] += 1; }",
        "const int row = pid_m / 2 * 2;\nc[row * num_pid_n + pid_n] += 1;",
        "int row = pid_m;\nc[row * num_pid_n + pid_n] += 1;",
        "for (int k = 0; k < 1; k++) c[pid_m * num_pid_n + pid_n] += 1;",
        "for (int k = pid_m; k < num_pid_m - 1; k += num_pid_m) c[pid_m * num_pid_n + pid_n] += 1;",
        "*(c + pid_m * num_pid_n + pid_n) += 1;", "float* p = c + pid_m * num_pid_n;\np[pid_n] += 1;",
        "float* p = c + pid_m / 2 * num_pid_n;\np[pid_n] += 1;", "*(c + pid_m / 2 * num_pid_n + pid_n) += 1;",
        "auto put = [&](int m, int n) { c[m * num_pid_n + n] += 1; };\nput(pid_m, pid_n);",
        "auto put = [&](int m, int n) { if (n > 0) c[m * num_pid_n + n] += 1; };\nput(pid_m, pid_n);",
    ])  # fmt: skip
    store = draw.choice(_BESIDE) if draw.random() < 0.25 else store
    store = _by_a_callee(draw, make) if draw.random() < 0.3 else store
    if is_persistent and draw.random() < 0.15:  # ends the loop behind a store
        store += draw.choice(["\nif (id == 3) break;", "\nif (pid_m > 0) return;", "\nif (pid_n >= num_pid_n) break;"])
    step = draw.choice(["gridDim.x"] * 4 + ["2 * gridDim.x", "num_pid_m", "gridDim.y", "gridDim.x * gridDim.y"])
    begun = draw.choice(["blockIdx.x"] * 4 + ["gridDim.x - 1 - blockIdx.x", "blockIdx.x / 2"])
    inner = f"{noise}{maps}\n{guard}\n{store}\n"
    if is_persistent and draw.random() < 0.3:
        body = f"int id = {begun};\nwhile (id < {count}) {{\n{inner}id += {step};\n}}\n"
        body = body if "continue" not in guard else body.replace("continue", "return")
    elif is_persistent:
        of_type = draw.choice(["int", "int", "unsigned"])
        body = f"for ({of_type} id = {begun}; id < {count}; id += {step}) {{\n{inner}}}\n"
    else:
        body = f"const int id = blockIdx.x;\n{inner}"
    text = f"__global__ void gemm(float* c, int num_pid_m, int num_pid_n) {{\n{body}}}\n"
    pair = draw.choice([("pid_m", "pid_n")] * 3 + [("tile_row", "tile_col"), ("tm", "tn"), ("one", "other")])
    for name, other in zip(("pid_m", "pid_n"), pair, strict=True):
        text = re.sub(rf"\b{name}\b", other, text)
    sizes = {"by": "8", "of": "3", "w": "2"}
    return Source(_HEAD + "".join(make.above) + text, "gemm", "kernels", ".hip", sizes, is_persistent)


def run(
    sources: list[Source], folder: Path, lines: Sequence[int], tiles: Sequence[tuple[int, int]], programs: Sequence[int]
) -> list[dict[tuple[int, ...], list[int]]]:
    """What each source computes: of a function its values, of a kernel how often each tile is stored."""
    parts, calls = [], []
    for k, source in enumerate(sources):
        body = source.text.replace(_HEAD, "")
        undone = "".join(f"\n#undef {name}" for name in set(re.findall(r"\b[CM]\d+\b", body)))
        body = re.sub(r"(?<!\w)::v", f"::n{k}::v", body)
        parts.append(f"namespace n{k} {{\n{body}\n}}{undone}\n")
        if source.kind == "c":
            calls.append(f"  for (int n : lines) for (int p = 0; p < n; p++) out((long long)n{k}::remap(p, n));")
        else:
            counts = ", ".join(map(str, programs)) if source.is_persistent else "0"
            calls.append(f"  for (auto& t : tiles) for (int g : {{{counts}}}) stored(n{k}::gemm, t[0], t[1], g);")
    main = _MAIN.format(
        lines=", ".join(map(str, lines)), tiles=", ".join(f"{{{m}, {n}}}" for m, n in tiles), calls="\n".join(calls)
    )
    path, made = folder / "all.cpp", folder / "all"
    path.write_text(_STUB + "".join(parts) + main, encoding="utf-8")
    command = ["g++", "-std=c++17", "-O0", "-fwrapv", "-w", "-fpermissive", str(path), "-o", str(made)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return _halves(sources, folder, lines, tiles, programs, done.stderr)
    ran = subprocess.run([str(made)], capture_output=True, text=True, check=False, timeout=300)
    if ran.returncode:
        return _halves(sources, folder, lines, tiles, programs, f"ended with {ran.returncode}")
    return _results(sources, iter(ran.stdout.split()), lines, tiles, programs)


def _halves(sources, folder, lines, tiles, programs, said):
    """Results of each half; of a source that g++ does not take, none: the text is not held against anything."""
    if len(sources) == 1:
        del said
        return [{}]
    middle = len(sources) // 2
    return [
        *run(sources[:middle], folder, lines, tiles, programs), *run(sources[middle:], folder, lines, tiles, programs)
    ]  # fmt: skip


def _results(sources, words, lines, tiles, programs):
    found = []
    for source in sources:
        if source.kind == "c":
            found.append({(n,): [int(next(words)) for _ in range(n)] for n in lines})
        else:
            each = programs if source.is_persistent else (0,)
            found.append({(m, n, g): [int(next(words)) for _ in range(m * n)] for m, n in tiles for g in each})
    return found


_MAIN = """
extern "C" int printf(const char*, ...);
static void out(long long v) {{ printf("%lld ", v); }}
static void stored(void (*k)(float*, int, int), int m, int n, int g) {{
  static float room[8192];
  for (auto& r : room) r = 0;
  float* c = room + 3000;
  gridDim.x = g ? g : m * n, gridDim.y = gridDim.z = 1;
  for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++) k(c, m, n);
  for (int i = 0; i < m * n; i++) printf("%d ", (int)c[i]);
}}
int main() {{
  static const int lines[] = {{{lines}}};
  static const int tiles[][2] = {{{tiles}}};
  (void)lines; (void)tiles;
{calls}
}}
"""
