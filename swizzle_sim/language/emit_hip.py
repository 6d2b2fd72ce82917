"""A candidate as a C++17 function for HIP, which a plain C++ compiler takes as well."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from swizzle_sim.language.emit import INDENT, Dialect
from swizzle_sim.language.ir import Assign, Compare, For, Form, If, Name, Stmt, names_read
from swizzle_sim.language.variables import (
    arguments,
    assigned,
    check_function_name,
    live_after_each,
    live_inside,
    respelled,
    used,
)

_DIALECT = Dialect(
    calls={"min": "swizzle_min", "max": "swizzle_max", "cdiv": "swizzle_cdiv"},
    select="{condition} ? {then} : {other}",
    operators={"//": "/", "and": "&&", "or": "||", "not": "!"},
    smallest="(-2147483647 - 1)",
)
_KEYWORDS = """\
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class
co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype
default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline
int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch template
this thread_local throw true try typedef typeid typename typeof union unsigned using virtual void volatile
wchar_t while xor xor_eq"""
# Not keywords, but macros or built-ins somewhere: taking them over would be legal and confusing.
_BUILT_IN = """\
NULL EOF assert errno stdin stdout stderr unix linux i386 INT_MAX INT_MIN threadIdx blockIdx blockDim gridDim
warpSize hipThreadIdx_x hipBlockIdx_x hipBlockDim_x hipGridDim_x main swizzle_min swizzle_max swizzle_cdiv"""
_TAKEN = frozenset(f"{_KEYWORDS} {_BUILT_IN}".split())
_WHERE_PID = "// where pid is the linear id, x fastest: blockIdx.x on a one-dimensional launch."
_WHERE_CLUSTER = (
    "// where pid is the cluster's linear id, x fastest: blockIdx.x / {size} on a one-dimensional launch in clusters\n"
    "// of {size} workgroups, all of which get the same."
)
_PRELUDE = """\
#ifndef SWIZZLE_SIM_HIP
#define SWIZZLE_SIM_HIP
#if !defined(__HIPCC__) && !defined(__CUDACC__)  // a plain C++ compiler, as in a test on the host
#define __host__
#define __device__
#define __forceinline__ inline
#endif
__host__ __device__ __forceinline__ int swizzle_min(int a, int b) { return a < b ? a : b; }
__host__ __device__ __forceinline__ int swizzle_max(int a, int b) { return a < b ? b : a; }
__host__ __device__ __forceinline__ int swizzle_cdiv(int a, int b) { return (a + b - 1) / b; }
#endif
"""


def emit_hip(form: Form, name: str = "swizzle", *, cluster: int = 1) -> str:
    """C++ source of a function that computes a candidate.

    Parameters
    ----------
    form : Form
    name : str
        Name of the function.
    cluster : int
        Workgroups of a cluster, where ids are those of clusters; `blockIdx` counts workgroups.

    Returns
    -------
    source : str
        A prelude guarded against repetition and a ``__host__ __device__`` function of 32-bit integers. It takes
        `arguments` by position (``program_id(0)`` as ``program_id_0``) and returns ``int`` for one result, otherwise a
        struct ``<name>_tile`` with the results as members.

    Raises
    ------
    LanguageError
        With code ``name`` if ``name`` cannot name a function.
    """
    check_function_name(name, _TAKEN)
    reserved = {one for one in used(form) if one[:1] == "_" and one[1:2].isupper()}
    spelled = respelled(form, {*_TAKEN, *reserved, name, f"{name}_tile"})
    writer = _Writer(replace(_DIALECT, names=spelled), {*used(form), *spelled.values()})
    results = [writer.dialect.name(one) for one in form.results]
    single = len(results) == 1
    taken = [writer.dialect.name(one) for one in arguments(form)]
    signature = f"{'int' if single else name + '_tile'} {name}({', '.join(f'int {one}' for one in taken)})"
    struct = [] if single else [f"struct {name}_tile {{ int {', '.join(results)}; }};", ""]
    call = f"{'const int ' + results[0] if single else f'const {name}_tile tile'} = {name}({', '.join(taken)});"
    where = _WHERE_CLUSTER.format(size=cluster) if cluster > 1 else _WHERE_PID
    return "\n".join(
        [
            _PRELUDE,
            *struct,
            "// Workgroup id to tile, emitted by swizzle-sim. In the kernel:",
            f"//     {call}",
            *[where] * ("pid" in form.inputs),
            f"__host__ __device__ __forceinline__ {signature} {{",
            *writer.block(form.body, set(form.results), set(form.inputs), INDENT),
            f"{INDENT}return {results[0] if single else '{' + ', '.join(results) + '}'};",
            "}",
            "",
        ]
    )


class _Writer:
    """Writes statements; declares each variable as late as C++ allows."""

    def __init__(self, dialect: Dialect, names: set[str]):
        self.dialect = dialect
        self._names = names

    def block(self, body: tuple[Stmt, ...], live: Collection[str], alive: set[str], indent: str) -> list[str]:
        """Lines of a block; ``live`` are names read after it, ``alive`` those declared (it adds its own)."""
        lines = []
        for stmt, after in zip(body, live_after_each(body, live), strict=False):
            if isinstance(stmt, Assign):
                lines.append(indent + self._assign(stmt, after, alive))
                continue
            # What an inner block assigns and this block reads later must be declared here.
            missing = sorted((assigned((stmt,)) & after) - alive)
            if missing:
                lines.append(f"{indent}int {', '.join(f'{self.dialect.name(one)} = 0' for one in missing)};")
                alive |= set(missing)
            lines += (
                self._if(stmt, after, alive, indent) if isinstance(stmt, If) else self._for(stmt, after, alive, indent)
            )
        return lines

    def _assign(self, stmt: Assign, after: set[str], alive: set[str]) -> str:
        kind = ""
        if stmt.target not in alive:
            kind = "int " if stmt.target in after else "[[maybe_unused]] int "
            alive.add(stmt.target)
        return f"{kind}{self.dialect.name(stmt.target)} = {self.dialect.expr(stmt.value)};"

    def _if(self, stmt: If, after: set[str], alive: set[str], indent: str) -> list[str]:
        inner = indent + INDENT
        lines = [f"{indent}if ({self.dialect.cond(stmt.condition)}) {{"]
        lines += self.block(stmt.body, after, set(alive), inner)
        match stmt.orelse:
            case ():
                return [*lines, f"{indent}}}"]
            case (If() as chained,):
                first, *rest = self._if(chained, after, alive, indent)
                return [*lines, f"{indent}}} else {first.lstrip()}", *rest]
        return [*lines, f"{indent}}} else {{", *self.block(stmt.orelse, after, set(alive), inner), f"{indent}}}"]

    def _for(self, stmt: For, after: set[str], alive: set[str], indent: str) -> list[str]:
        var, stop, lines = self.dialect.name(stmt.var), stmt.stop, []
        if {stmt.var, *assigned(stmt.body)} & set(names_read(stop)):
            # range() reads its bounds once, a C++ loop in every iteration
            fresh = self._fresh(f"{var}_stop")
            lines.append(f"{indent}const int {fresh} = {self.dialect.expr(stop)};")
            stop = Name(fresh)
        more = self.dialect.cond(Compare("<", Name(stmt.var), stop))
        step = f"++{var}" if stmt.step == 1 else f"{var} += {stmt.step}"
        lines.append(f"{indent}for (int {var} = {self.dialect.expr(stmt.start)}; {more}; {step}) {{")
        lines += self.block(stmt.body, live_inside(stmt, after), alive | {stmt.var}, indent + INDENT)
        return [*lines, f"{indent}}}"]

    def _fresh(self, name: str) -> str:
        while name in self._names:
            name += "_"
        self._names.add(name)
        return name
