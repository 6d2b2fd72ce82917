"""Values for names that nothing gives one, guessed from how people spell them, and said."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from swizzle_sim.language.ir import GRID_NAMES
from swizzle_sim.triton_source.canonical import OWN

CHUNKS = (1, 2, 4, 8, 16, 32, 64)  # tried for a constant that is a chunk, window or group
# What a whole spelling means, in lower case and without underscores.
_MEANINGS: dict[str, tuple[str, ...]] = {
    "num_pids": (
        "gridmn", "numworkgroups", "numwgs", "numwg", "totalwgs", "totalwg", "domainsize", "numpids", "numblocks",
        "numprograms", "totalprograms", "totalpids", "numsms", "numtiles", "totaltiles", "gridsize", "gridtotal",
        "numctas", "totalblocks", "ntiles", "nblocks",
    ),
    "num_pid_m": (
        "numtilesm", "tilesm", "gridm", "mtiles", "numblocksm", "mblocks", "nummblocks", "nummtiles", "numrowtiles",
        "numpidm", "ntilesm", "gm", "mblocknum", "blocknumm",
    ),
    "num_pid_n": (
        "numtilesn", "tilesn", "gridn", "ntilesn", "numblocksn", "nblocksn", "numnblocks", "numntiles", "numcoltiles",
        "gn", "nblocknum", "blocknumn",
    ),
    "num_xcds": ("numxcds", "numxcd", "nxcd", "nxcds", "xcds", "xcdswizzle", "numxcc", "numchiplets"),
    "pid": (
        "wid", "wgid", "workgroupid", "tileid", "tileidx", "bid", "blockid", "blockidx", "linearid", "programid",
        "tile", "pidin", "oldpid", "origpid", "tileinmm", "idx", "index", "wg", "taskid", "xy", "blockindex",
        "linearidx", "linearindex", "taskidx",
    ),
}  # fmt: skip
_OF_TILES = {"numrows": "num_pid_m", "numcols": "num_pid_n", "rblks": "num_pid_m", "cblks": "num_pid_n"}  # of a helper
_BY_SPELLING = {spelling: meaning for meaning, spellings in _MEANINGS.items() for spelling in spellings}
_CHUNK = re.compile(
    r"chunk|group(_?size)?(_?[mn])?$|^(C|W|WGM|wgm|swizzle_w|swizzle_c|panel_?width|window)$|_?(WGM)$|^(group|panel)|^[mn]01_?$|swizzle_sub_[mn]$"
)
CONDITION = re.compile(r"^if(n?def)?_")  # of the preprocessor, which nothing decides
_FLAG = re.compile(
    rf"{CONDITION.pattern}|^k?(Use|Enable|Is|Has|With)[A-Z]|(?i:(swizzle|remap)(_pid)?$)"
    r"|(?i:^up(cast|grade)$)|(?i:^(use|enable|is|has|with)_)"
)
_SPLIT = re.compile(r"^(num_?)?(k_?splits?|splits?_?k)$", re.IGNORECASE)  # with 1, the launch is that of the tiles
# A product that helpers of the tutorials' grouped order take from their callers.
_IN_GROUP = re.compile(r"^(num_)?(pids?|tiles?|blocks?)_(in|per)_group$", re.IGNORECASE)
_RATIO = re.compile(r"(quer(y|ies)|heads?|q)_per_(kv|group)", re.IGNORECASE)


def guess(
    names: Iterable[str], parameters: Sequence[str] = (), *, takes_id: bool = False
) -> dict[str, int | str | tuple[int, ...]]:
    """Value, expression of the grid's names, or several values to try, of each name whose spelling tells one."""
    found: dict[str, int | str | tuple[int, ...]] = {}
    names = list(names)
    groups = [name for name in names if is_chunk(name)]
    for name in names:
        if name in GRID_NAMES:
            continue
        meaning = _meaning(name)
        first = next(iter(parameters), "") if "pid" not in map(_meaning, names) else ""
        if takes_id and first and name.partition("_I")[0] == first and (meaning in ("", "pid")):
            found[name] = "pid"
        elif meaning and (meaning != "pid" or takes_id):
            found[name] = meaning
        elif takes_id and (side := _OF_TILES.get(re.sub("_", "", name).lower())):
            found[name] = side
        elif _FLAG.search(name):
            found[name] = (0, 1)
        elif _IN_GROUP.match(name) and len(groups) == 1:
            found[name] = f"{groups[0]} * num_pid_{'m' if groups[0].lower().endswith('n') else 'n'}"
        elif is_chunk(name):
            found[name] = CHUNKS
        elif _RATIO.search(name) or _SPLIT.search(name):
            found[name] = 1
    return found


def is_chunk(name: str) -> bool:
    """Whether a name is that of a chunk, window or group, of which powers of two are tried."""
    if name.lower().startswith("num_pid"):  # num_pid_in_group is a product, no constant
        return False
    return _CHUNK.search(name.lower()) is not None or _CHUNK.search(name) is not None


def as_comment(guessed: dict[str, int | str | tuple[int, ...]]) -> str:
    """Guessed values as a comment states them."""
    return " ".join(
        f"{name}={','.join(map(str, value)) if isinstance(value, tuple) else value}" for name, value in guessed.items()
    )


def _meaning(name: str) -> str:
    return _BY_SPELLING.get(re.sub("_", "", name.removeprefix(OWN)).lower(), "")
