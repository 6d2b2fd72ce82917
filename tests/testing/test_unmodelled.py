# ruff: noqa: E501 - tables of constructs, one a line
"""Is nothing proved that a reader does not model: is it skipped with its line, or refuted as what it computes?"""

import re

import pytest

from swizzle_sim.testing.run import check_file

C = "#include <hip/hip_runtime.h>\n"
BODY = (
    "const int q = num_pids / 8, x = pid % 8;\nint rest = num_pids % 8;\n{odd}\nreturn x * q + min(x, rest) + pid / 8;"
)


def function(odd, above="", head="int pid, int num_pids"):
    return f"{C}{above}__device__ int remap({head}) {{\n{BODY.format(odd=odd)}\n}}\n"


WRONG_IN_C = {
    "macro as text": function("rest = num_pids % EIGHT;", "#define EIGHT 4 + 4\n"),
    "macro that shadows min": function("", "#define min(a, b) (a)\n"),
    "condition of the preprocessor": function("rest = 0;\n#ifdef FIXED\nrest = num_pids % 8;\n#endif"),
    "else of a condition": function("#if WIDE > 2\nrest = num_pids % 8;\n#else\nrest = 0;\n#endif"),
    "redefined": function("rest = num_pids % EIGHT;", "#define EIGHT 8\n#undef EIGHT\n#define EIGHT 7\n"),
    "line that goes on in a comment": function("rest = 0; // and then \\\nrest = num_pids % 8;"),
    "inner scope": function("rest = 0;\n{ int rest = num_pids % 8; rest += 0; }"),
    "narrow local": function("signed char small = pid / 8;\nrest += small - pid / 8;"),
    "narrow by an alias": function("using I = short;\nI small = pid;\nrest += small - pid;"),
    "narrow parameter": function("", head="unsigned short pid, int num_pids"),
    "narrow result": function("").replace("int remap", "uint8_t remap"),
    "unsigned below zero": function("unsigned d = 0u - 1u;\nrest = (d < 5u) ? rest : 0;"),
    "static": function("static int kept = 0;\nkept += 1;\nrest += kept;"),
    "volatile": function("volatile int v = 0;\nrest = v;"),
    "reference": function("auto& other = rest;\nother = 0;"),
    "pointer": function("int* other = &rest;\n*other = 0;"),
    "address handed on": function("reset(&rest);"),
    "call that may change": function("reset(rest);"),
    "capture": function("auto clear = [&]() { rest = 0; };\nclear();"),
    "overload": function("rest = part(num_pids);", "int part(int a) { return a % 8; }\nint part(long) { return 0; }\n"),
    "template reference": function("set(rest, 0);", "template <class T> void set(T& a, int b) { a = b; }\n"),
    "assembler": function('asm volatile("v_mov_b32 %0, 0" : "=v"(rest));'),
    "jump": function("if (pid > 3) goto end;\nrest = 0;\nend:;"),
    "comma": function("int z = (rest = 0, 1);"),
    "step inside": function("int z = rest++;"),
    "switch": function("switch (num_pids) { case 3: rest = 0; }"),
    "break": function("for (int k = 0; k < 4; k++) { if (k == 1) break; rest += 1; }"),
    "const away": function("const int kept = rest;\nconst_cast<int&>(kept) = 0;\nrest = kept;"),
    "const of a parameter away": function("set(rest);", "void set(const int& v) { const_cast<int&>(v) = 0; }\n"),
    "const away by an alias": function("set(rest);", "using R = int*;\nvoid set(const int& v) { *(R)&v = 0; }\n"),
    "field": function("args.rest = 0;\nrest = args.rest;"),
    "variable of the file": function("rest = SPARE;", "int SPARE = 3;\n"),
    "macro that nothing defines": function("RESET_REST;"),
    "brackets": function("(rest) = 0;"),
    "choice of a place": function("int other = 0;\n(num_pids > 0 ? rest : other) = 0;"),
    "reference of a cast": function("(int&)rest = 0;"),
    "bound by reference": function("int other = 3;\nauto& [a, b] = pair_of(rest, other);\na = 0;"),
    "text of another file": function('#include "steps.inc"'),
    "constant that is computed": function("rest = num_pids % NUM_XCDS;", "constexpr int NUM_XCDS = pick(8);\n"),
    "pushed macro": function(
        "rest = num_pids % EIGHT;", '#define EIGHT 8\n#pragma push_macro("EIGHT")\n#undef EIGHT\n#define EIGHT 7\n'
    ),
    "digraph": function("rest = num_pids % EIGHT;", "#define EIGHT 8\n%:undef EIGHT\n%:define EIGHT 7\n"),
    "address in a record": function("auto held = std::ref(rest);\nheld.get() = 0;"),
    "name in its own value": function("rest = 0;\n{ int q = num_pids % 8 + q - q; rest += q; }"),
    "comment over lines": function("rest = num_pids % EIGHT;", "#define EIGHT 8 /*\n*/ - 1\n"),
    "word over lines": function("re\\\nst = 0;"),
    "condition of unsigned": function("#if -1 > 0u\nrest = 0;\n#endif"),
    "condition of bits": function("#if ~0 == -1 && !0 + 1 == 2\nrest = 0;\n#endif"),
    "version of the language": function("#if __cplusplus > 201703L\nrest = 0;\n#endif"),
    "name of the file": function("int EIGHT = 8;\nrest = num_pids % ::EIGHT;", "constexpr int EIGHT = 7;\n"),
    "name like a word of libraries": function("rest = num_pids % PER_DEVICE + 8;", "int PER_DEVICE = 3;\n"),
    "flag": function("", head="bool pid, int num_pids"),
    "one name twice": function("drop(rest, rest);", "void drop(int& a, const int& b) { a = a - b; a = a + b; }\n"),
    "list of references": function("drop(rest);", "template <class... T> void drop(T&&... a) { ((a = 0), ...); }\n"),
    "capture with a name": function("auto drop = [&r = rest] { r = 0; };\ndrop();"),
    "two lambdas": function(
        "auto f = [](int v) { return v % 7; };\n{ auto f = [](int v) { return v % 8; }; }\nrest = f(num_pids);"
    ),
    "step in an argument": function("rest = of(rest, rest++);", "int of(int a, int b) { return a; }\n"),
    "declaration like a function": function("int z(rest = 0);"),
    "assignment like a function": function("id(rest) = 0;", "int& id(int& a) { return a; }\n"),
    "declared in a condition": function("if (int rest = 0; true) { x0 = rest; }\nrest = x0;", "int x0;\n"),
    "object that holds": function("auto h = hold(rest);\nrest = num_pids % 8;\nclear(h);", "H hold(int& a);\n"),
    "list that holds": function("clear({rest});", "struct H { int& r; };\nvoid clear(H h) { h.r = 0; }\n"),
    "own min": function("").replace("min(", "z::min(").replace(
        "__device__", "namespace z { template <class T> T min(T a, T b) { return a; } }\n__device__", 1),
    "name that the caller has for another": function(
        "int E = 8;\nrest = part(num_pids) + E - 8;", "constexpr int E = 7;\nint part(int a) { return a % E; }\n"),
    "field of another record": function(
        "rest = part(num_pids, one) + two.chunk - two.chunk;", "struct A { int chunk; };\n"
        "int part(int a, A x) { return a % x.chunk; }\n", head="int pid, int num_pids, A one, A two"),
    "field with the name of a constant": function(
        "rest = num_pids % x.E;", "struct A { int E; };\nconstexpr int E = 8;\n", head="int pid, int num_pids, A x"),
    "constants of two classes": function("rest = A::part(num_pids);", "struct A { static constexpr int Y = 7, X = Y * 1;\n"
        "static int part(int a) { return a % X; } };\nstruct B { static constexpr int Y = 8, X = Y * 1; };\n"),
    "class with other numbers": function("rest = S::part(num_pids);", "template <int N> struct M {\n"
        "static int part(int a) { return a % N; } };\nusing S = M<7>;\n"),
    "condition that cuts a block": function("if (pid < 0) { rest = 1;\n#ifdef FIXED\n} else {\n#endif\nrest = 0; }"),
    "declared under a condition": function("#ifdef FIXED\nconst int z = 0;\n#else\nconst int z = 1;\n#endif\nrest += z;"),
    "dividing object made for another": function("unsigned r = 0, z = 0;\nby.divmod(num_pids, 7, z, r);\nrest = r;",
                                                 "MDiv2 by;\n"),
    "deduced unsigned": function("rest = part(pid) < 0 - pid - 1 ? 0 : rest;", "auto part(unsigned a) { return a % 8; }\n"),
    "deduced in a lambda": function("auto part = [](int a) { return a % 8u; };\nrest = part(pid) < 0 - pid - 1 ? 0 : rest;"),
    "type of the argument": function("auto less = [](auto a, int b) { return a < b; };\nrest = less(pid % 8u, 0 - pid - 1) ? 0 : rest;"),
    "type behind the parameters": function("rest += part(pid * 256) - pid * 256;", "auto part(int a) -> uint8_t { return a; }\n"),
    "types of a list": function("auto [a, b] = part(pid);\nrest = a < 0 - pid - 1 ? 0 : rest;",
                                "auto part(unsigned a) { return std::make_pair(a % 8, a); }\n"),
    "type of an enumeration": function("rest = K < 0 - pid - 1 ? 0 : rest;", "enum E : unsigned { K = 5 };\n"),
    "attribute": function('__attribute__((mode(QI))) int small = pid;\nrest += small - pid;'),
}  # fmt: skip
KERNEL = (
    C
    + """__global__ void gemm(float* c, int num_pid_m, int num_pid_n) {{
{begin}
const int pid_m = t / num_pid_n, pid_n = t % num_pid_n;
{end}
}}
"""
)
PLAIN, STORE = "const int t = blockIdx.x;", "c[pid_m * num_pid_n + pid_n] = 1;"
ALL = "num_pid_m * num_pid_n"
WRONG_IN_C |= {
    "return": KERNEL.format(begin=f"{PLAIN}\nif (t >= {ALL} - 1) return;", end=STORE),
    "return of the tile": KERNEL.format(begin=PLAIN, end=f"if (pid_n == num_pid_n - 1) return;\n{STORE}"),
    "if around the store": KERNEL.format(begin=PLAIN, end=f"if (pid_m > 0) {{ {STORE} }}"),
    "end of the wave": KERNEL.format(begin=f"{PLAIN}\nif (t == 2) __builtin_amdgcn_endpgm();", end=STORE),
    "step": KERNEL.format(begin=f"for (int t = blockIdx.x; t < {ALL}; t += 3 * gridDim.x) {{", end=STORE + "}"),
    "stop": KERNEL.format(begin=f"for (int t = blockIdx.x; t < {ALL} - 2; t += gridDim.x) {{", end=STORE + "}"),
    "start": KERNEL.format(begin=f"for (int t = blockIdx.x + 1; t < {ALL}; t += gridDim.x) {{", end=STORE + "}"),
    "step of another axis": KERNEL.format(
        begin=f"for (int t = blockIdx.x; t < {ALL}; t += gridDim.y) {{", end=STORE + "}"
    ),
    "leaves the loop behind the store": KERNEL.format(
        begin=f"for (int t = blockIdx.x; t < {ALL}; t += gridDim.x) {{", end=f"{STORE} if (pid_m == 1) break; }}"
    ),
    "pointer to another row": KERNEL.format(begin=PLAIN, end="float* p = c + pid_m / 2 * num_pid_n;\np[pid_n] = 1;"),
    "leaves the loop": KERNEL.format(
        begin=f"for (int t = blockIdx.x; t < {ALL}; t += gridDim.x) {{", end=f"if (pid_n == 1) break;\n{STORE}}}"
    ),
}
# How what takes the address, or the tile, is called: that it stores the tile is supposed, where it is not seen.
BY_CALLEES = {
    "put(c[{}]);": ("void put(float& x) {{ x += 1; }}", "template <class T> void put(T&& x) {{ x = x + 1; }}",
                    "void in(float& x) {{ x++; }}\nvoid put(float& x) {{ in(x); }}"),
    "float y = put(c[{}]);": ("float put(float& x) {{ x += 1; return x; }}",),
    "float y = 2 * put(c + {});": ("float put(float* x) {{ *x += 1; return 1; }}",),
    "*put(c, pid_m, pid_n, num_pid_n) += 1;": ("float* put(float* c, int m, int n, int w) {{ return c + {}; }}",),
    "put(c, pid_m, pid_n, num_pid_n)[0] += 1;": ("auto put(float* c, int m, int n, int w) {{ return c + {}; }}",),
    "put(c, pid_m, pid_n, num_pid_n) += 1;": ("float& put(float* c, int m, int n, int w) {{ return c[{}]; }}",),
    "if (put(c, pid_m, pid_n, num_pid_n)) {{ }}": ("int put(float* c, int m, int n, int w) {{ c[{}] += 1; return 1; }}",),
    "c[put((unsigned)pid_m, pid_n, num_pid_n)] += 1;": (
        "int put(int m, int, int) {{ return m; }}\nint put(unsigned m, int n, int w) {{ return {}; }}",),
    "auto put = [&](int m, int n, int w) {{ return {}; }};\nc[put(pid_m, pid_n, num_pid_n)] += 1;": ("",),
}  # fmt: skip
ROW, HALVED = "pid_m * num_pid_n + pid_n", "pid_m / 2 * num_pid_n + pid_n"
PUT_IN_C = "__device__ void put(float* c, int m, int n, int w) {{ {} }}\n"
BY_COLUMNS = KERNEL.replace("/ num_pid_n", "% num_pid_m").replace("% num_pid_n;", "/ num_pid_m;")
WRONG_IN_C |= {
    f"beside the tile, {text}": KERNEL.format(begin=PLAIN, end=text).replace("const int pid_m", "const int pid_m" if "struct" in text else "int pid_m")
    for text in (
        "int& r = pid_m;\nr /= 2;\n" + STORE, "std::exchange(pid_m, pid_n);\n" + STORE, "c[pid_m, pid_n] += 1;",
        "float* d = c;\nd = d + pid_m;\nd[pid_n * 1] += 1;", f"{STORE}\nc[(pid_m - 1) * num_pid_n + pid_n] += 1;",
        f"{STORE}\nc[pid_m * num_pid_n + pid_n - num_pid_n] += 1;", f"{STORE}\nc[(num_pid_m - 1) * num_pid_n + pid_n] += 1;",
        "struct { int m, n; } t = {pid_m, pid_n};\nt.m /= 2;\nc[t.m * num_pid_n + t.n] += 1;",
        "struct T { int m, n; };\nT t{pid_m, pid_n}, u{0, 0};\nt = u;\nc[t.m * num_pid_n + t.n] += 1;",
    )
}  # fmt: skip
WRONG_IN_C |= {
    f"half of the rows, {end}": above + BY_COLUMNS.format(begin=PLAIN, end=f"char q = num_pid_n;\n{end}")
    for end, above in (
        (f"*(c + {HALVED}) += 1;", ""), (f"++*(c + {HALVED});", ""), (f"c[{HALVED}]++;", ""),
        (f"atomicAdd(&c[{HALVED}], 1.f);", ""), (f"float& r = c[{HALVED}];\nr += 1;", ""),
        (f"c += {HALVED};\n*c = 1;", ""), ("c[(char)pid_m * num_pid_n + pid_n] = 1;", ""),
        ("put(c, pid_m, pid_n, num_pid_n);", PUT_IN_C.format("c[m / 2 * w + n] = 1;")),
        ("put(c, pid_m, pid_n, num_pid_n) ;", PUT_IN_C.format("atomicAdd(&c[m * w + n / 2], 1.f);")),
        (f"auto put = [&]() {{ c[{HALVED}] += 1; }};\nput();", ""), ("c[pid_m * num_pid_m + pid_n] = 1;", ""),
    )
} | {
    f"trip, {head}, {end}": BY_COLUMNS.format(
        begin=f"int all = {ALL};\n{head} {{", end=f"{STORE} {end} {'t += gridDim.x;' if 'while' in head else ''} }}")
    for end in ("all -= 1;", "c += 1;", "c++;", "num_pid_n++;")
    for head in ("for (int t = blockIdx.x; t < all; t += gridDim.x)", "int t = blockIdx.x;\nwhile (t < all)")
    if end != "all -= 1;" or "while" in head  # with which no tile of a for loop is found
}  # fmt: skip
TRITON = """import triton
import triton.language as tl
{above}
@triton.jit
def gemm(c, M, N, BLOCK: tl.constexpr, NUM_SMS: tl.constexpr):
    num_pid_m = tl.cdiv(M, BLOCK)
    num_pid_n = tl.cdiv(N, BLOCK)
    total = num_pid_m * num_pid_n
{begin}
        {cast}
        pid_m = t // num_pid_n
        pid_n = t % num_pid_n
        {guard}
        {store}
"""


def triton(begin="    t = tl.program_id(0)\n    if True:", cast="pass", guard="pass", store="", above=""):
    store = store or "tl.store(c + pid_m * N + pid_n, 1)"
    return TRITON.format(begin=begin, cast=cast, guard=guard, store=store, above=above)


REMAP = """import triton
import triton.language as tl
{above}
@triton.jit
def remap_xcd(pid, num_pids):
    high = {high}
    rest = num_pids % 8
    rest = 8 if rest == 0 else rest
    x, at = pid % 8, {at}
    if x < rest:
        return x * high + at
    return rest * high + (x - rest) * (high - 1) + at
"""
HIGH = "tl.cdiv(num_pids, 8)"


def remap(at="pid // 8", high=HIGH, above="", first="pass", head="(pid, num_pids)", decorator="@triton.jit"):
    text = REMAP.format(above=above, high=high, at=at).replace(
        "    rest = num_pids % 8\n", f"    rest = num_pids % 8\n    {first}\n"
    )
    return text.replace("(pid, num_pids)", head, 1).replace("@triton.jit", decorator, 1)


NP = "    for t in range(tl.program_id(0), total, tl.num_programs(0)):"
FLOOR = "lambda a, b: a // b"
# What gives a name of the file another meaning, each with a call of it that is wrong by it.
CDIV = {
    "defined": "@triton.jit\ndef cdiv(a, b):\n    return a // b", "for": f"for cdiv in ({FLOOR},):\n    pass",
    "lambda": f"cdiv = {FLOOR}", "walrus": f"(cdiv := {FLOOR})", "noted": f"cdiv: object = {FLOOR}",
    "global": f"def begin():\n    global cdiv\n    cdiv = {FLOOR}\nbegin()", "globals": f"globals()['cdiv'] = {FLOOR}",
    "match": f"match {FLOOR}:\n    case cdiv:\n        pass", "with": f"with held({FLOOR}) as cdiv:\n    pass",
    "setattr": f"setattr(sys.modules[__name__], 'cdiv', {FLOOR})", "comprehension": f"[cdiv := f for f in ({FLOOR},)]",
    "import": "from nowhere.maths import cdiv", "max": "from builtins import max as cdiv",
}  # fmt: skip
TL = {
    "patched": f"tl.cdiv = {FLOOR}", "set": f"setattr(tl, 'cdiv', {FLOOR})", "class": f"class tl:\n    cdiv = {FLOOR}",
    **{text.partition("{")[0]: text.format(FLOOR) for text in (
        "triton.language.cdiv = {}", "from triton.language import core\ncore.cdiv = {}", "tl.__dict__['cdiv'] = {}", "eval(held, {})",
        "patch('triton.language.cdiv', {}).start()", "import triton.language as T\nT.cdiv = {}", "object.__setattr__(tl, 'cdiv', {})")},
    "another module": "import other as tl", "in a function": f"def patch():\n    tl.cdiv = {FLOOR}\npatch()",
}  # fmt: skip
OTHER = "@triton.jit\ndef other(p, n):\n    return n - 1 - p\n"
AGAIN = {
    "for": f"for other in ({FLOOR},):\n    pass", "class": "class other:\n    pass", "import": "from sib import other",
    "with": "with held(3) as other:\n    pass", "star": "from sib import *", "update": "globals().update(other=3)",
    "plain": "def other(p, n):\n    return p // 2", "walrus": f"if (other := {FLOOR}):\n    pass",
}  # fmt: skip
CONSTANT = ("C = 2", "C += 1", "for C in (2,):\n    pass", "C, D = 2, 3", "print(C := 2)", "D = C = 2", "from sib import C",
            "while C < 2:\n    C = 2", "if held:\n    C = 2", "def f():\n    global C\n    C = 2")  # fmt: skip
INSIDE = {
    "match": "match 0:\n        case rest: pass", "else of a loop": "for k in range(1): pass\n    else: rest = 0",
    "import": "from sib import rest", "nonlocal": "def f():\n        nonlocal rest\n        rest = 0\n    f()",
    "try": "try: rest = 0\n    finally: pass", "truths": "rest = (pid >= 0) + (pid >= 0) + rest - 2",
    "function inside": "def half(a): return 0\n    rest = half(rest)",
    "another function": "half = id\n    rest = half(rest)",
}  # fmt: skip
HALF = "@triton.jit\ndef half(a):\n    return 0 * a\n"
OF_ROW = ("pid_m // 2", "pid_m * 0", "pid_m if pid_m > 2 else 2", "(pid_m * 0.5).to(tl.int32)", "pid_m ^ pid_m",
          "(pid_m - 3) * (pid_m - 3)", "pid_m * (pid_m % 2)", "tl.div_rn(pid_m, 2)", "half(pid_m)", "tl.load(c + pid_m)",
          "pid_m // 2 + pid_m % 2", "pid_m.to(tl.int8)", "min(pid_m, 3)", "pid_m > 0")  # fmt: skip
AT = "c + pid_m * N + pid_n"
IN_MASK = ("pid_m < num_pid_m - 1", "om < M - BLOCK", "om + BLOCK < M", "om < N", "tl.load(c + pid_m) > 0")
PUT = "@triton.jit\ndef put(p, a, b, n):\n    {}\n"
STORES = {
    "in a helper, less": ("put(c, pid_m, pid_n, N)", PUT.format("tl.store(p + a // 2 * n + b, 1)")),
    "in a helper, masked": ("put(c, pid_m, pid_n, N)", PUT.format("tl.store(p + a * n + b, 1, a > 0)")),
    "of one side": (f"tl.store({AT}, 1) if pid_m > 0 else None", ""), "of and": (f"pid_m > 0 and tl.store({AT}, 1)", ""),
    "in a loop": (f"for k in range(BLOCK):\n            tl.store({AT}, 1)", ""),
    "by another name": (f"put = tl.store\n        put({AT}, 1)", ""), "without strides": ("tl.store(c + pid_m + pid_n, 1)", ""),
    "on the other axis": ("tl.store(c + pid_n * num_pid_n + pid_m, 1)", ""),
    **{f"beside it, {at}": (f"tl.store({AT}, 1)\n        tl.store(c + {at}, 1)", "") for at in (
        "(pid_m - 1) * N + pid_n", "(-1 + pid_m) * N + pid_n", "pid_m * N + pid_n - N", "(N - 1 - pid_m) * N + pid_n", "pid_n")},
    "on the other axis, in a helper": ("n = num_pid_n\n        put(c, pid_n, pid_m, n)", PUT.format("tl.store(p + a * n + b, 1)")),
    "by a function that is not here": ("put(c, pid_m, pid_n)", "from nowhere import put"),
    "under an if that changes the row": (
        "row = pid_m\n        if pid_m > 1: row = 1\n        tl.store(c + row * N + pid_n, 1)", ""),
    "after a raise": (f"if pid_m > 1: raise ValueError\n        tl.store({AT}, 1)", ""),
}  # fmt: skip
BLOCKED = "om, on = pid_m * BLOCK + tl.arange(0, BLOCK), pid_n * BLOCK + tl.arange(0, BLOCK)\n        tl.store({}, 1)"
PLACES = ("c + om[:, None] + on", "c + M * om[:, None] + on", "c + NUM_SMS * om[:, None] + NUM_SMS * on", "c + 64 * om[:, None] + on",
          "c + BLOCK * om[:, None] + on", "c + (N - N) * om[:, None] + on", "c + N // 2 * om[:, None] + on", "c + num_pid_n * om[:, None] + on",
          "c + W * om[:, None] + on", "c + N * (pid_m + tl.arange(0, BLOCK))[:, None] + on", "c + N * on[:, None] + om",
          "tl.make_block_ptr(c, (M, N), (N, N), (pid_m * BLOCK, pid_n * BLOCK), (BLOCK, BLOCK), (1, 0))",
          "tl.make_block_ptr(c, (M, N), strides=(0, 1), offsets=(pid_m * BLOCK, pid_n * BLOCK), block_shape=(BLOCK, BLOCK), order=(1, 0))")  # fmt: skip
FLAT = """    p = tl.num_programs(0)
    steps = tl.cdiv(K, BLOCK)
    start = tl.program_id(0)
    own = total // p
    if start < total % p:
        own += 1
    t = start - p
    at = -1
    pid_m = 0
    for k in range(0, steps * own):
        at = tl.where(at == steps - 1, 0, at + 1)
        if at == 0:
            t += p
            pid_m = t // num_pid_n
            pid_n = t % num_pid_n
        if at == steps - 1:"""
IN_FLAT = (("steps * own", "own"), ("own += 1", "own += 2"), ("total // p", "(total - 1) // p"), ("at = -1", "at = 0"), ("0, at + 1", "1, at + 1"),
           ("if at == 0", "if at == 1"), ("if at == steps - 1:", "if at == steps - 2:"), ("if at == steps - 1:", "if t >= 0:"), ("range(0", "range(1"), ("start < total", "start <= total"),
           ("        if at == steps - 1:", "        steps = 1\n        if at == steps - 1:"), ("start - p", "start"), ("t += p", "t += p + 1"),
           ("        if at == steps - 1:", "        pid_m = num_pid_m - 1 - pid_m\n        if at == steps - 1:"))  # fmt: skip


def flat(*turned):
    text = triton(FLAT.replace(*turned) if turned else FLAT).replace("c, M, N", "c, M, N, K")
    return text.replace(
        "        pass\n        pid_m = t // num_pid_n\n        pid_n = t % num_pid_n\n        pass\n        ",
        "            ",
    )


LOOPS = {
    "stop": "    for t in range(tl.program_id(0), total - 1, tl.num_programs(0)):",
    "step": "    for t in range(tl.program_id(0), total, tl.num_programs(0) + 1):",
    "stop by the programs": "    p = tl.num_programs(0)\n    for t in range(tl.program_id(0), total // p * p, tl.num_programs(0)):",
    "left by the programs": f"    if total % tl.num_programs(0) != 0: return\n{NP}",
    "step of another axis": "    for t in range(tl.program_id(0), total, tl.num_programs(1)):",
    "start": "    for t in range(tl.program_id(0) // 2, total, tl.num_programs(0)):",
    "start by the tiles": "    for t in range(total - 1 - tl.program_id(0), total, tl.num_programs(0)):",
    "step that changes": "    s = tl.num_programs(0)\n    if M > 3: s = 5\n    for t in range(tl.program_id(0), total, s):",
}
TRIPS = {
    "leave": (f"tl.store({AT}, 1)", "break"), "return": (f"tl.store({AT}, 1)", "return"), "skip": ("if t > 7: continue", ""),
    "first trip": ("if t != tl.program_id(0): continue", ""), "whole waves": ("if t >= total // tl.num_programs(0) * tl.num_programs(0): break", ""),
    "once": (f"if done == 0: tl.store({AT}, 1)", "done = 1"), "masked once": (f"tl.store({AT}, 1, done == 0)", "done = 1"),
    "stride": (f"tl.store({AT}, 1)", "N = N + 1"), "pointer": ("c += 1", ""),
    "the program's own": ("pid_m = tl.program_id(0)", ""), "from trip to trip": ("pid_m = pid_m + done", "done = 1"),
}  # fmt: skip
WRONG_IN_TRITON = {
    **{f"cast {said}": remap(at=said) for said in (
        "(pid // 8).to(tl.int16)", "(pid // 8 - 1).to(tl.uint32) + 1", "tl.cast(pid // 8, tl.int1)", "(pid // 8).to(S)",
        "(pid // 8).to(small.dtype)", "(pid * 0.125).to(tl.int32)")},
    "cast by name": remap(at="(pid // 8).to(S)", above="S = tl.int8"),
    "cast to another's type": remap(at="(pid // 8).to(k.dtype)", first="k = rest.to(tl.int8)"),
    "narrow parameter": remap(head="(pid: tl.int16, num_pids)"), "type that is patched": remap(
        at="(pid // 8).to(tl.int32)", above="tl.int32 = tl.int8"),
    **{f"cdiv, {name}": remap(high="cdiv(num_pids, 8)", above=text) for name, text in CDIV.items()},
    **{f"tl, {name}": remap(above=text) for name, text in TL.items()},
    **{f"other, {name}": remap(first="rest = other(rest, 8)", above=OTHER + text) for name, text in AGAIN.items()},
    **{f"constant, {text}": remap(first="rest = rest // C", above=f"C = 1\n{text}") for text in CONSTANT},
    **{f"inside, {name}": remap(first=text, above=HALF) for name, text in INSIDE.items()},
    **{f"decorator, {text}": remap(decorator=f"{text}\n@triton.jit", above="def cache(f):\n    return id")
       for text in ("@shifted", "@cache", "@mine.shifted")},
    "a pair of pointers": triton(store=f"p, q = c, {AT}\n        tl.store(p, 1)"),
    "tuned by the file": remap(first="rest = other(rest, 8)", above=f"def autotune(n):\n    return id\n{OTHER}other = autotune(3)(other)"),
    "jit of the file": remap(decorator="@jit", above="def jit(f):\n    return id"),
    "heuristics": remap(first="rest = rest // C", head="(pid, num_pids, C: tl.constexpr = 1)",
                        decorator="@triton.heuristics({'C': lambda a: 2})\n@triton.jit"),
    **{f"row {text}": triton(store=f"row = {text}\n        tl.store(c + row * N + pid_n, 1)", above=HALF) for text in OF_ROW},
    **{f"place {text}": triton(store=BLOCKED.format(text), above="W: tl.constexpr = 64") for text in PLACES},
    **{f"flat {turned[1]}": flat(*turned) for turned in IN_FLAT},
    "of what is not read, by another name": triton(store="row, col = pid_m.to(tl.uint8), pid_n.to(tl.uint8)\n        put = tl.store\n        put(c + row * N + col, 1)"),
    "stride by a count that is assigned again": re.sub(r"    num_pid_. = .*\n", "", triton(
        store="tl.store(c + pid_m * num_pid_m + pid_n, 1)")).replace("M, N", "num_pid_m, num_pid_n").replace(
            "    total", "    if num_pid_n > 5: num_pid_m = num_pid_n\n    total"),
    **{f"mask {text}": triton(store=f"om = pid_m * BLOCK + tl.arange(0, BLOCK)\n        tl.store({AT}, 1, mask={text})")
       for text in IN_MASK},
    "mask by name": triton(guard="inside = (pid_m < num_pid_m - 1) & (pid_n >= 0)", store=f"tl.store({AT}, 1, mask=inside)"),
    **{f"store {name}": triton(store=text, above=above) for name, (text, above) in STORES.items()},
    "return": triton(guard="if pid_m == num_pid_m - 1:\n            return"),
    "if around the store": triton(store=f"if pid_n > 0:\n            tl.store({AT}, 1)"),
    "another axis": triton(store=f"b = tl.program_id(1) // 2\n        tl.store({AT} + b * M, 1)"),
    "name that the caller has for another": remap(
        first="E = 8\n    rest = part(num_pids) + E - 8", above="E: tl.constexpr = 7\n\n@triton.jit\ndef part(a):\n    return a % E\n"),
    "axis that is not stored to": triton(cast="b = tl.program_id(1)"),
    **{f"loop, {name}": triton(text) for name, text in LOOPS.items()},
    "step of XCDs": triton("    for t in range(tl.program_id(0), total, NUM_XCDS):").replace("NUM_SMS", "NUM_XCDS"),
    **{f"trip, {name}": triton(f"    done = 0\n{NP}", guard=text, store=f"tl.store({AT}, 1)\n        {end or 'pass'}")
       for name, (text, end) in TRIPS.items()},
    **{f"while, {text}": triton("    t = tl.program_id(0)\n    s = tl.num_programs(0)\n    while t < total:",
       store=f"tl.store({AT}, 1)\n        {text}\n        t += s") for text in ("total -= 1", "s += 1", "N += 1")},
    "two loops": triton(NP.replace("total", "total // 2"), store=f"tl.store({AT}, 1)\n{NP}\n        tl.store(c + t, 1)"),
    "epilogue": triton(NP, store=f"tl.store({AT}, 1)\n    tl.store({AT} + 1, 1)"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("suffix", "name"), [*((".hip", name) for name in WRONG_IN_C), *((".py", name) for name in WRONG_IN_TRITON)]
)
def test_what_is_not_modelled_is_not_proved(tmp_path, suffix, name):
    path, text = tmp_path / f"k{suffix}", (WRONG_IN_C if suffix == ".hip" else WRONG_IN_TRITON)[name]
    path.write_text(text, encoding="utf-8")
    every = [one for one in check_file(path, function="" if suffix == ".hip" else "gemm" if "def gemm" in text else "remap_xcd")
             if one.name.endswith(("::remap", "::gemm", "::remap_xcd"))]  # fmt: skip
    assert every
    for found in every:
        assert found.verdict != "proved", found.message
        assert found.status in ("skipped", "error") or found.verdict == "refuted" or "supposing" in found.message, (
            found.message
        )


@pytest.mark.parametrize(("call", "above"), [(call, one) for call, every in BY_CALLEES.items() for one in every])
def test_a_tile_that_a_callee_stores_is_followed_or_the_verdict_supposes_it(tmp_path, call, above):
    names = {"m": "pid_m", "n": "pid_n", "w": "num_pid_n"}
    here = "{m} / 2 * {w} + {n}".format(**({k: k for k in names} if "int m" in call + above else names))
    path = tmp_path / "k.hip"
    path.write_text(C + above.format(here).replace("void", "__device__ void") + KERNEL.replace(C, "").format(
        begin=PLAIN, end=call.format(here)), encoding="utf-8")  # fmt: skip
    found = [one for one in check_file(path) if one.name.endswith("::gemm")]
    assert [one.verdict != "proved" or "supposing that the tile that is computed" in one.message for one in found] == [
        True
    ]


READ_IN_C = {
    "within a condition": f"#ifdef USE_ROCM\n{function('')}#endif\n",
    "either side of a condition": function("int q2 = 0;\n#if defined(__gfx942__)\nq2 = 3;\n#elif __CUDA_ARCH__ < 900\nq2 = 4;\n"
                                           "#else\nq2 = 5;\n#endif\nrest += q2 - q2;"),
    "declared on either side": function("#ifdef FIXED\nconst int z = 7;\n#else\nconst int z = 1;\n#endif\nrest += z - z;"),
    "returns of a lambda": function("float* p = [&](int a) { return (float*)a; }(3);"),
    "constant of a template": f"template <int W_> struct M {{\nstatic constexpr int GROUP_M = W_;\n"
                              f"{function('rest += pid / GROUP_M - pid / GROUP_M;')}}};\n",
    "constants of two classes, alike": f"struct A {{ static constexpr int E = 8; }};\nstruct B {{ static constexpr int E = 8;\n"
                                       f"{function('rest = num_pids % E;')}}};\n",
    "copies of numbers": function("int z = rest;\nauto a = rest;\nconst auto b = pid < 3 ? rest : z;\nrest = 8 * b / 8;"),
    "dividing object": function("unsigned r = 0, z = 0;\nGROUP_M.divmod(pid, z, r);\nrest += int(z - GROUP_M.div(pid));",
                                head="int pid, int num_pids, MDiv GROUP_M"),
    "id behind the counts": "__device__ int2 at(const int num_rows, const int num_cols, const int linear_idx) {\n"
                            "return { num_rows - 1 - linear_idx / num_cols, linear_idx % num_cols };\n}\n",
    "names of the grid by letters": "__device__ auto remap(unsigned tile_idx, unsigned m, unsigned n) {\n"
                                    "unsigned n_tiles = (n + BN - 1) / BN, m_tiles = (m + BM - 1) / BM;\n"
                                    ""
                                    "unsigned last = m_tiles * n_tiles - 1 - tile_idx, m_at = last / n_tiles, n_at = last % n_tiles;\n"
                                    "return make_tuple(m_at * 1, n_at);\n}\n",
}  # fmt: skip


@pytest.mark.parametrize("name", READ_IN_C)
def test_what_is_read_of_c_is_proved(tmp_path, name):
    path = tmp_path / "k.hip"
    path.write_text(READ_IN_C[name], encoding="utf-8")
    assert [(one.verdict, "supposing" in one.message) for one in check_file(path)] == [("proved", False)]


HEADER = "#ifndef EIGHT\n#define EIGHT 8\n#endif\ninline int part(int a) { return a % EIGHT; }\n"


@pytest.mark.parametrize(("above", "of", "verdict"), [
    ('#include "a.h"\n', HEADER, "proved"), ('#include "a.h"\n#define EIGHT 7\n', HEADER, "proved"),
    ('#define EIGHT 7\n#include "a.h"\n', HEADER, "refuted"),
    ('#include "a.h"\n#include "b.h"\nusing b::part;\n', HEADER, ""),
    ('#if 0\n#include "a.h"\n#endif\nint part(int a) { return a % 7; }\n', HEADER, "refuted"),
    ('#include "a.h"\n#define part(n) (part(pid) < 0 - pid - 1 ? 0 : n % 8)\n', "inline unsigned part(int id) { return id % 8; }\n", ""),
])  # fmt: skip
def test_a_function_of_a_header_is_read_where_it_is_included(tmp_path, above, of, verdict):
    (tmp_path / "a.h").write_text(of, encoding="utf-8")
    (tmp_path / "b.h").write_text("namespace b { inline int part(int a) { return a % 7; } }\n", encoding="utf-8")
    path = tmp_path / "k.hip"
    path.write_text(function("rest = part(num_pids);", above), encoding="utf-8")
    assert [one.verdict for one in check_file(path, function="remap")] == [verdict]


def test_the_same_without_the_construct_is_proved(tmp_path):
    texts = {
        "a.hip": function(""), "b.hip": KERNEL.format(begin=PLAIN, end=STORE), "c.py": triton(),
        "d.py": triton("    for t in range(tl.program_id(0), total, tl.num_programs(0)):"),
        "e.py": remap(at="(pid // 8).to(tl.int64)", above=OTHER, first="rest = 7 - other(rest, 8)"),
        "i.py": triton(store=f"om = pid_m * BLOCK + tl.arange(0, BLOCK)\n        tl.store({AT}, 1, mask=om < M)"),
        "j.py": triton("    t = tl.program_id(0)\n    while t < total:", store=f"tl.store({AT}, 1)\n        t = t + tl.num_programs(0)"),
        "l.py": flat(), "m.py": triton(store=BLOCKED.format("c + N * om[:, None] + on")),
        "n.py": triton(store="first = pid_m * BLOCK\n        om = first + tl.arange(0, BLOCK)\n        tl.store(c + N * om + pid_n, 1, mask=om < M)"),
        "o.py": triton(store="tl.store(c + (pid_m * num_pid_n + pid_n) * BLOCK + tl.arange(0, BLOCK), 1)"),
        "k.py": triton(store="put(c, pid_m, pid_n, N)", above=PUT.format("tl.store(p + a * n + b, 1)")),
        "f.hip": KERNEL.format(begin=f"for (int t = blockIdx.x; t < {ALL}; t += gridDim.x) {{", end=STORE + "}"),
        "p.hip": function("auto [a, b] = part(pid);\nrest += a - b;", "auto part(int a) { return std::make_pair(a, a); }\n"),
        "g.hip": function("unsigned d = num_pids - pid;\nrest += d + pid - num_pids;"),
        **{f"{k}.hip": PUT_IN_C.format("c[m * w + n] = 1;") + BY_COLUMNS.format(begin=PLAIN, end=f"char q = num_pid_n;\n{end}")
           for k, end in enumerate((
               f"*(c + {ROW}) += 1;", f"c[{ROW}]++;", f"atomicAdd(&c[{ROW}], 1.f);", f"float& r = c[{ROW}];\nr += 1;",
               f"c += {ROW};\n*c = 1;", "put(c, pid_m, pid_n, num_pid_n);", f"auto put = [&]() {{ c[{ROW}] += 1; }};\nput();",
               "c[(size_t)pid_n * num_pid_m + pid_m] = 1;"))},
        "h.hip": function("rest = num_pids % EIGHT;", "#define EIGHT (4 + 4)\n"),
    }  # fmt: skip
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        found = list(check_file(tmp_path / name, function="gemm" if "gemm" in text else ""))
        assert [one.verdict for one in found] == ["proved"], (name, found)


def test_a_verdict_names_its_launches_and_what_it_supposes(tmp_path):
    path = tmp_path / "k.py"
    path.write_text(triton("    for t in range(tl.program_id(0), total, NUM_SMS):"), encoding="utf-8")
    (found,) = check_file(path, function="gemm")
    assert found.verdict == "tested"
    assert "of one axis in tiles, of pid_m and pid_n, supposing that NUM_SMS programs are launched" in found.message
    path.write_text(triton(store=BLOCKED.format("c + S * om[:, None] + T * on")).replace("M, N", "M, N, S, T", 1))
    (found,) = check_file(path, function="gemm")
    assert (
        "proved: every launch of one axis in tiles, of pid_m and pid_n, where S and T keep tiles apart" in found.message
    )
    text = tmp_path / "k.swizzle"
    tiles = "pid_m = pid // num_pid_n\npid_n = pid % num_pid_n"
    plane = "x = pid % num_pid_x\ny = pid // num_pid_x"
    for said, of in (("pid = pid", "of one axis"), (tiles, "of one axis in tiles"), (plane, "of two axes")):
        text.write_text(said, encoding="utf-8")
        (found,) = check_file(text)
        assert f"proved: every launch {of}, up to" in found.message


@pytest.mark.parametrize(("at", "is_whole"), [
    ("pid_m / 2 * 2", False), ("pid_m / 2 + pid_m % 3", False), ("pid_m / 2 * 2 + pid_m % 2", True), ("pid_m", True),
])  # fmt: skip
def test_a_quotient_and_a_remainder_of_one_divisor_are_the_tile(tmp_path, at, is_whole):
    path = tmp_path / "k.hip"
    path.write_text(
        f"{C}__global__ void gemm(float* c, int num_pid_m, int num_pid_n) {{\nconst int id = blockIdx.x;\n"
        "int pid_m = id % num_pid_m, pid_n = id / num_pid_m;\nif (pid_m % 3 == 8u) return;\n"
        f"const int row = {at};\nc[row * num_pid_n + pid_n] += 1;\n}}\n", encoding="utf-8")  # fmt: skip
    (found,) = check_file(path, function="gemm")
    assert ("stores the same items in pid" not in found.message) == is_whole, found.message


MASKED = "om = pid_m // 2 * BLOCK + tl.arange(0, BLOCK)\n        tl.store(c + om * N + pid_n, 1, mask={})"
SAME = {
    "tl.store(c + pid_n, 1)": "pid 0 and pid 1 (", MASKED.format("om < M"): "pid 0 and pid 1 (",
    "tl.store(c + (pid_m * N + pid_n) // 2, 1)": "pid 0 and pid 1 (", "tl.store(c + pid_m * W + pid_n * W, 1)": "pid 1 and pid 2 (",
    "b = tl.program_id(1) // 2\n        tl.store(c + (b * M + pid_m) * N + pid_n, 1)": "pid 0, with two ids of another axis, (",
    MASKED.format("(om < M) & (pid_m % 2 == 0)"): "", "tl.store(c + tl.arange(0, BLOCK) * N + pid_m * N + (pid_n ^ pid_n), 1)": "pid 0 and pid 1 (",
    "tl.atomic_add(c + pid_n, 1)": "", "if pid_m == 0: tl.store(c + pid_n, 1)": "", "tl.store(c + pid_m * W + (pid_n ^ 1), 1)": "",
    "tl.store(c + pid_n, 1)\n        tl.store(c + pid_m, 1)": "", "tl.store(c + tl.load(c + pid_m), 1)": "",
    "row = pid_m // 2\n        tl.store(c + row * N + pid_n, 1, mask=tl.load(c) > 0)": "", "put(c, pid_m // 2, N)": "",
}  # fmt: skip


@pytest.mark.parametrize("store", SAME)
def test_stores_of_two_workgroups_that_plainly_meet_are_said(tmp_path, store):
    path = tmp_path / "k.py"
    path.write_text(triton(NP, store=store, above=PUT.format("tl.store(p + a * b, 1)")).replace("c, M", "c, W, M"))
    (found,) = check_file(path, function="gemm")
    assert (f"stores the same items in {SAME[store]}" in found.message) == (SAME[store] != ""), found.message
    assert SAME[store] or found.verdict in ("tested", "refuted"), found.message


BESIDE = "if HAS:\n    import triton\n    import triton.language as tl\nelse:\n    triton = A()\n    tl = B()\n"


@pytest.mark.parametrize(("home", "is_proved"), [
    (BESIDE, True), (BESIDE + f"tl.cdiv = {FLOOR}", False), (BESIDE + "tl = C()", False), (BESIDE.replace("    triton = A()\n", ""), False),
    (BESIDE.replace("triton.language", "mine"), False), (BESIDE + f"triton.language.cdiv = {FLOOR}", False),
    (BESIDE.replace("triton = A()", "import triton"), False), (f"import triton\nimport triton.language as tl\ntl.cdiv = {FLOOR}", False),
])  # fmt: skip
def test_a_package_that_stands_in_for_triton_where_it_is_not(tmp_path, home, is_proved):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "__init__.py").write_text(home)
    path = tmp_path / "k.py"
    path.write_text(triton().replace("import triton\nimport triton.language as tl", "from own import tl, triton", 1))
    (found,) = check_file(path, function="gemm")
    assert ("proved: every" in found.message and "supposing that tl of own is Triton's" in found.message) == is_proved
    assert is_proved or found.verdict != "proved"


def test_a_loop_past_the_tiles_is_named(tmp_path):
    path = tmp_path / "k.py"
    text = re.sub(r"    num_pid_. = .*\n", "", triton(NP.replace("total,", "total + 1,")))
    path.write_text(text.replace("M, N", "num_pid_m, num_pid_n").replace("pid_m * N", "pid_m * num_pid_n"))
    (found,) = check_file(path, function="gemm")
    assert "NOT a bijection" in found.message and "ends at total + 1, which is not 1" in found.message, found.message


def test_a_store_through_a_descriptor_is_a_store(tmp_path):
    text = (
        "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(c_desc, c, FLAG: tl.constexpr):\n"
        "    pid = tl.num_programs(0) - 1 - tl.program_id(0)\n    if FLAG:\n"
        "        tl.store_tensor_descriptor(c_desc, [pid, 0], value=1)\n    else:\n        tl.store(c + pid, 1)\n"
    )
    (tmp_path / "k.py").write_text(text)
    (found,) = check_file(tmp_path / "k.py", function="k")
    assert found.verdict == "proved", found.message


@pytest.mark.parametrize(("store", "above"), [
    ("float* row[1] = {c + pid_m};\nrow[0][pid_n] += 1;", ""), ("float* d = c + pid_m;\nfloat** e = &d;\n(*e)[pid_n] += 1;", ""),
    ("static float* d;\nd = c + pid_m;\nd[pid_n] += 1;", ""), ("auto d = at(c, pid_m);\nd[pid_n] += 1;", "float* at(float* c, int m) { return c + m; }\n"),
    ("put(c + pid_m, pid_n);", "template <class P> void put(P d, int n) { d[n] += 1; }\n"), ("c[pid_m * num_pid_n - 1 + pid_n] += 1;", ""),
    ("c[at<0>(pid_m, pid_n, num_pid_n)] += 1;", "template <int Z> int at(int m, int n, int w) { return m * w * Z + n; }\n"),
    ("[&] { if (pid_m == 2) return; c[pid_m * num_pid_n + pid_n] += 1; }();", ""),
])  # fmt: skip
def test_an_address_that_is_not_of_the_tile_alone_is_not_proved(tmp_path, store, above):
    found = _of_kernel(tmp_path, f"int pid_m = id / num_pid_n, pid_n = id % num_pid_n;\n{store}", above)
    unread = found.status in ("skipped", "error")
    assert unread or (found.verdict != "proved" and "supposing" in found.message), found.message


@pytest.mark.parametrize("count", ["num_pid_n = min(num_pid_n, 5);\nint w = num_pid_n;", "int w = min(num_pid_n, 5);"])
def test_a_kernel_that_counts_its_tiles_anew_is_not_refuted(tmp_path, count):
    found = _of_kernel(tmp_path, f"{count}\nint pid_m = id / w, pid_n = id % w;\nc[pid_m * w + pid_n] += 1;")
    assert found.status in ("skipped", "error") and "tiles=" in found.message, found.message


def _of_kernel(folder, body, above=""):
    path = folder / "k.hip"
    head = f"{C}{above}__global__ void gemm(float* c, int num_pid_m, int num_pid_n) {{\nconst int id = blockIdx.x;\n"
    path.write_text(f"{head}{body}\n}}\n", encoding="utf-8")
    (found,) = check_file(path, function="gemm")
    return found
