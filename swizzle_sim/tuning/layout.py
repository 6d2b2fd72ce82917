"""`Padding`: rows of a kernel's matrices made longer by whole lines, where the launch can choose that.

It can where the kernel takes the stride as an argument: ``stride_bk`` of ``b_ptr``. Nothing in the source changes: the
tensor is allocated with longer rows, and the stride says so.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from swizzle_sim.tuning.loops import argument_names
from swizzle_sim.workload.kernels import Kernel
from swizzle_sim.workload.launch import Launch
from xcd_model import Gpu
from xcd_model.errors import TraceError
from xcd_model.trace.padding import padded

LINES = (1, 2, 4)  # by which rows are made longer


@dataclass(frozen=True)
class Padding:
    """Rows of one tensor made longer; of none by default.

    ``pointer`` is the kernel's parameter, ``stride`` the argument that is the leading dimension: ``items`` as launched,
    to which ``more_items`` are added.
    """

    tensor: str = ""
    pointer: str = ""
    stride: str = ""
    items: int = 0
    more_items: int = 0
    item_bytes: int = 1

    def __str__(self) -> str:
        return f"{self.tensor} + {self.more_items * self.item_bytes} B a row" if self.tensor else "as launched"

    @property
    def instruction(self) -> str:
        """What the launch has to do."""
        if not self.tensor:
            return "leave the layout as it is"
        wide = self.items + self.more_items
        return (
            f"allocate {self.pointer} with rows of {wide} items instead of {self.items}, and pass {self.stride}={wide}"
        )

    def on(self, kernel: Kernel) -> Kernel:
        """The kernel with trace and launch so padded."""
        if not self.tensor:
            return kernel
        far, more = self.items * self.item_bytes, self.more_items * self.item_bytes

        def trace(line_bytes: int) -> Any:
            return padded(kernel.build_trace(line_bytes), self.tensor, pitch_bytes=far, more_bytes=more)

        return replace(kernel, build_trace=trace, make_launch=lambda: self._launch(kernel.launch))

    def _launch(self, launch: Launch | None) -> Launch:
        assert launch
        wide, arguments = self.items + self.more_items, dict(launch.arguments)
        arguments[self.pointer] = replace(launch.arrays[self.pointer], strides=(wide, 1))
        return replace(launch, arguments={**arguments, self.stride: wide})

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"padding": {**asdict(self), "instruction": self.instruction}}


def paddings_of(kernel: Kernel, gpu: Gpu) -> tuple[list[Padding], dict[str, str]]:
    """Paddings that the launch can choose, none first, and by tensor why it cannot choose others."""
    if kernel.launch is None:
        return [Padding()], {"": f"{kernel.name} has no Triton launch whose strides could change"}
    line_bytes = gpu.l2.line_bytes
    trace = kernel.build_trace(line_bytes)
    found, refused = [Padding()], {}
    for tensor, pointer in argument_names(trace, kernel.launch).items():
        array = kernel.launch.arrays[pointer]
        stem, (*_, far, near) = pointer.removesuffix("_ptr"), (0, *array.item_strides)
        named = [
            name
            for name, value in kernel.launch.arguments.items()
            if name.startswith(f"stride_{stem}") and value == far and name not in kernel.launch.arrays
        ]
        if len(array.shape) != 2 or near != 1:
            refused[tensor] = "no matrix stored row by row"
        elif len(named) != 1:
            refused[tensor] = (
                f"no argument stride_{stem}... is its leading dimension {far}, so the launch cannot choose it"
            )
        elif far * array.item_bytes % line_bytes:
            refused[tensor] = f"its rows of {far * array.item_bytes} B are no whole lines of {line_bytes} B"
        else:
            of_tensor = [
                Padding(tensor, pointer, named[0], far, n * line_bytes // array.item_bytes, array.item_bytes)
                for n in LINES
            ]
            try:
                of_tensor[0].on(kernel).build_trace(line_bytes)
                found += of_tensor
            except TraceError as error:
                refused[tensor] = str(error)
    return found, refused
