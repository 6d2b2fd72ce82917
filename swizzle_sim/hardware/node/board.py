"""`Board`: clock, power and energy of the GPU as its driver counts them, where a user may read them; else nothing.

Sources: NVML (``libnvidia-ml``); the kernel's hwmon files of amdgpu, which amd-smi reads too.
"""

from __future__ import annotations

import contextlib
import ctypes
from pathlib import Path
from typing import Any

NVML = {"clock_mhz": ("nvmlDeviceGetClockInfo", 1.0), "power_w": ("nvmlDeviceGetPowerUsage", 1e-3)}
NVML |= {"energy_j": ("nvmlDeviceGetTotalEnergyConsumption", 1e-3)}
SM_CLOCK = 1
HWMON = {"clock_mhz": ("freq1_input", 1e-6), "power_w": ("power1_average", 1e-6), "energy_j": ("energy1_input", 1e-6)}


class Board:
    """The board of one device of PyTorch's."""

    def __init__(self, device: Any, sys: Path = Path("/sys")):
        self.nvml: Any = None
        self.handle = ctypes.c_void_p()
        self.spent_j: float | None = None
        place = (getattr(device, f"pci_{part}_id", -1) for part in ("domain", "bus", "device"))
        self.files = list(sys.glob("bus/pci/devices/{:04x}:{:02x}:{:02x}.0/hwmon/hwmon*".format(*place)))
        with contextlib.suppress(OSError, AttributeError):
            nvml = ctypes.CDLL("libnvidia-ml.so.1")
            uuid = f"GPU-{device.uuid}".encode()
            if nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByUUID(uuid, ctypes.byref(self.handle)) == 0:
                self.nvml = nvml

    def read(self) -> dict[str, float]:
        """Clock and power now, and the energy since the last call."""
        found = {name: value for name in NVML if (value := self._value(name)) is not None}
        if (total := found.pop("energy_j", None)) is not None:
            if self.spent_j is not None:
                found["energy_j"] = round(total - self.spent_j, 3)
            self.spent_j = total
        return found

    def _value(self, name: str) -> float | None:
        if self.nvml is not None:
            function, unit = NVML[name]
            raw = ctypes.c_ulonglong() if name == "energy_j" else ctypes.c_uint()
            which = (ctypes.c_int(SM_CLOCK),) if name == "clock_mhz" else ()
            status = getattr(self.nvml, function)(self.handle, *which, ctypes.byref(raw))
            return None if status else raw.value * unit
        file, unit = HWMON[name]
        for folder in self.files:
            with contextlib.suppress(OSError, ValueError):
                return int((folder / file).read_text()) * unit
        return None
