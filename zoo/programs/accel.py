# SPDX-License-Identifier: MIT
"""The accelerator of these programs: the virtual GPU where there is one, else the CPU.

    device = accel.pick("auto")        # "vgpu" or "cpu", for .to(device)
    accel.work(30)                     # what the rest of a large network would take on it, in ms
    accel.wait()                       # until all that is queued is done

The networks here are small, so that the host can compute their values; work() stands for the layers
that only a GPU would have. On the CPU it is nothing: the small network is all there is."""
import sys

STATE = {"device": "cpu", "gpu": None}


def hide():
    """A torch that was built for CUDA would take the virtual GPU for one to compute on: to it there is none."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda:
        cuda.is_available, cuda.device_count = lambda: False, lambda: 0


def pick(wanted="auto", index=0, torch=True):
    if wanted == "cpu":
        return "cpu"
    try:
        import vgpu
        if torch:
            import vgpu.torch
            vgpu.torch.enable()
            vgpu.torch.set_device(index)
            STATE["gpu"] = vgpu.torch.device()
        else:
            STATE["gpu"] = vgpu.Device(index)
            hide()
    except (ImportError, OSError, RuntimeError) as error:
        if wanted != "auto":
            raise
        print(f"no GPU ({error}): training on the CPU", flush=True)
        return "cpu"
    STATE["device"] = "vgpu"
    return "vgpu"


def gpu():
    """The device itself, None on the CPU."""
    return STATE["gpu"]


def work(ms, sm=0.8):
    if STATE["gpu"] is not None:
        STATE["gpu"].launch(ms=ms, sm=sm)


def wait(spin=False):
    if STATE["gpu"] is not None:
        STATE["gpu"].synchronize(spin=spin)
