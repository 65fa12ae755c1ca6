# SPDX-License-Identifier: MIT
"""torch tensors that live on the virtual GPU, as far as waiting goes.

    import torch, vgpu.torch
    vgpu.torch.enable()                  # torch.Tensor.to and torch.nn.Module.to learn "vgpu"
    model = model.to("vgpu")
    loss = model(batch.to("vgpu")).sum() # queued: returns at once
    loss.item()                          # waits, in libcuda.so.1

The numbers are right, because torch computes them on the host; what a GPU would take for them is
queued on the virtual one as kernels, and .item(), .cpu(), .tolist() and .numpy() wait for those."""
import torch

from .device import Device

# An operation takes a launch, the memory traffic of its result, and for products their arithmetic.
LAUNCH_MS, BYTES_PER_MS, FLOPS_PER_MS = 0.005, 1e9, 5e10
PRODUCTS = {"matmul", "mm", "bmm", "addmm", "linear", "conv1d", "conv2d", "conv3d", "__matmul__", "einsum"}
# Views and questions: no kernel.
FREE = {"__get__", "__set__", "detach", "view", "reshape", "size", "dim", "numel", "nelement", "t",
        "transpose", "permute", "squeeze", "unsqueeze", "requires_grad_", "as_subclass", "expand",
        "element_size", "is_floating_point", "__len__", "stride", "storage_offset", "__repr__"}
STATE = {"device": None, "index": 0, "forward_ms": 0.0}
ORIGINAL = {}


def device():
    """The device that the tensors of this process are on."""
    if STATE["device"] is None:
        STATE["device"] = Device(STATE["index"])
    return STATE["device"]


def set_device(index):
    """Before the first tensor: which of the visible devices."""
    if STATE["device"] is not None:
        raise RuntimeError("the device is in use already")
    STATE["index"] = index


def nbytes(tensor):
    return tensor.element_size() * tensor.nelement()


def plain(tensor):
    return tensor.as_subclass(torch.Tensor)


def cost_ms(name, result, arguments):
    ms = LAUNCH_MS + nbytes(plain(result)) / BYTES_PER_MS
    operands = [a for a in arguments if isinstance(a, torch.Tensor)]
    if name in PRODUCTS and len(operands) > 1:
        inner = plain(operands[1]).nelement() / max(1, plain(result).shape[-1] if result.dim() else 1)
        ms += 2 * plain(result).nelement() * inner / FLOPS_PER_MS
    return ms


class Tensor(torch.Tensor):
    """A tensor on the virtual GPU."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs or {})
        name = getattr(func, "__name__", "")
        if name == "backward":
            # Both gradients of each product: about twice the way forward.
            device().launch(ms=LAUNCH_MS + 2 * STATE["forward_ms"], sm=0.8)
            STATE["forward_ms"] = 0.0
        elif isinstance(result, Tensor) and name not in FREE:
            with torch._C.DisableTorchFunction():
                ms = cost_ms(name, result, args)
            STATE["forward_ms"] += ms
            device().launch(ms=ms, sm=0.8 if name in PRODUCTS else 0.3)
        return result

    def _wait(self):
        with torch._C.DisableTorchFunction():
            size = nbytes(self)
        device().fetch(max(size, 1))
        return plain(self)

    def cpu(self, *args, **kwargs):
        return self._wait()

    def item(self):
        return self._wait().item()

    def tolist(self):
        return self._wait().tolist()

    def numpy(self, *args, **kwargs):
        return self._wait().detach().numpy()

    def __float__(self):
        return float(self.item())

    def __int__(self):
        return int(self.item())

    def __bool__(self):
        return bool(self.item())

    def __format__(self, spec):
        return format(self.item(), spec) if self.dim() == 0 else object.__format__(self, spec)

    def to(self, *args, **kwargs):
        where = wanted(args, kwargs)
        if where is None:
            return super().to(*args, **kwargs)
        if not where.startswith("vgpu"):
            return ORIGINAL["tensor"](self._wait(), *args, **kwargs)
        args, kwargs = without_device(args, kwargs)
        return super().to(*args, **kwargs) if args or kwargs else self


def wanted(args, kwargs):
    """The device named in the arguments of .to(), None when it names none ("vgpu", "cpu")."""
    for value in list(args[:1]) + [kwargs.get("device")]:
        if isinstance(value, (str, torch.device)):
            return str(value)
    return None


def without_device(args, kwargs):
    """The rest of the arguments of .to(): dtype and the like."""
    rest = {name: value for name, value in kwargs.items() if name not in ("device", "non_blocking")}
    return [a for a in args if not isinstance(a, (str, torch.device, bool))], rest


def send(tensor, non_blocking=False):
    """The tensor on the virtual GPU. Pageable unless non_blocking: then as from pinned memory."""
    device().copy(max(nbytes(plain(tensor)), 1), pinned=non_blocking)
    return tensor.as_subclass(Tensor)


def tensor_to(self, *args, **kwargs):
    where = wanted(args, kwargs)
    if where is not None and where.startswith("vgpu"):
        rest, named = without_device(args, kwargs)
        if rest or named:
            self = ORIGINAL["tensor"](self, *rest, **named)
        # .to(device, dtype, non_blocking): the first flag, as torch has it
        flags = [a for a in args if isinstance(a, bool)] or [False]
        return send(self, non_blocking=bool(kwargs.get("non_blocking", flags[0])))
    return ORIGINAL["tensor"](self, *args, **kwargs)


def module_to(self, *args, **kwargs):
    """Parameters stay host tensors (torch computes with them); their bytes are on the device."""
    where = wanted(args, kwargs)
    if where is not None and where.startswith("vgpu"):
        rest, named = without_device(args, kwargs)
        if rest or named:
            ORIGINAL["module"](self, *rest, **named)
        total = sum(nbytes(t) for t in list(self.parameters()) + list(self.buffers()))
        if total:
            device().alloc(total)
            device().copy(total)
        return self
    return ORIGINAL["module"](self, *args, **kwargs)


def enable():
    """Teaches torch.Tensor.to and torch.nn.Module.to the device "vgpu". A second time does nothing."""
    if not ORIGINAL:
        ORIGINAL["tensor"], ORIGINAL["module"] = torch.Tensor.to, torch.nn.Module.to
        torch.Tensor.to, torch.nn.Module.to = tensor_to, module_to
