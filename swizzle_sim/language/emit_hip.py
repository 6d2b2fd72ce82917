"""A candidate as a C++17 function for HIP, which a plain C++ compiler takes as well."""

from __future__ import annotations

from dataclasses import replace

from swizzle_sim.language.emit import INDENT, Dialect, Writer
from swizzle_sim.language.ir import Assign, Compare, For, Form, If, Name, names_read
from swizzle_sim.language.variables import arguments, assigned, check_function_name, respelled, used

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
    writer = _Cpp(replace(_DIALECT, names=spelled), {*used(form), *spelled.values()})
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


class _Cpp(Writer):
    """Declares each variable as late as C++ allows; ``names`` are those in use."""

    opening, chained, otherwise, end = "if ({}) {{", "}} else if ({}) {{", "} else {", "}"
    nothing = ()

    def __init__(self, dialect: Dialect, names: set[str]):
        super().__init__(dialect)
        self._names = names

    def declare(self, stmt: If | For, missing: list[str], alive: set[str]) -> list[str]:
        alive |= set(missing)
        return [f"int {', '.join(f'{self.dialect.name(one)} = 0' for one in missing)};"]

    def assign(self, stmt: Assign, after: set[str], alive: set[str]) -> str:
        kind = "" if stmt.target in alive else "int " if stmt.target in after else "[[maybe_unused]] int "
        return f"{kind}{super().assign(stmt, after, alive)};"

    def loop(self, stmt: For) -> list[str]:
        var, stop, lines = self.dialect.name(stmt.var), stmt.stop, []
        if {stmt.var, *assigned(stmt.body)} & set(names_read(stop)):
            # range() reads its bounds once, a C++ loop in every iteration
            fresh = f"{var}_stop"
            while fresh in self._names:
                fresh += "_"
            self._names.add(fresh)
            lines.append(f"const int {fresh} = {self.dialect.expr(stop)};")
            stop = Name(fresh)
        more = self.dialect.cond(Compare("<", Name(stmt.var), stop))
        step = f"++{var}" if stmt.step == 1 else f"{var} += {stmt.step}"
        return [*lines, f"for (int {var} = {self.dialect.expr(stmt.start)}; {more}; {step}) {{"]
