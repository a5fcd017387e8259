"""The fastest PyTorch we could write: gradients by hand in autograd Functions, framed signals, reused arrays."""

from __future__ import annotations

import torch

from benchmarks.peers import torch_steps
from benchmarks.peers.torch_base import TorchPeer, stencil
from benchmarks.peers.torch_steps import inner


class SpectralConvFunction(torch.autograd.Function):
    """z = alpha u, u_m = sum_k beta_k 1[N_k] L^m y_k; all maps framed (K, H+2, W+2, B)."""

    @staticmethod
    def forward(context, peer, y, sets, alpha, beta):
        n_terms = alpha.shape[1]
        terms = peer.buffer("powers", n_terms, *y.shape)
        terms[0] = y
        for m in range(1, n_terms):
            peer.steps.laplacian(terms[m - 1], terms[m])
        u = peer.steps.mix(terms, beta.view(-1, 1, 1, 1) * sets)
        context.peer = peer
        context.save_for_backward(y, sets, alpha, beta, u)
        return (alpha @ u.view(n_terms, -1)).view(-1, *y.shape[1:])

    @staticmethod
    def backward(context, grad_z):
        y, sets, alpha, beta, u = context.saved_tensors
        peer, flat = context.peer, grad_z.reshape(len(alpha), -1)
        grad_alpha = flat @ u.view(len(u), -1).t()
        grad_u = (alpha.t() @ flat).view_as(u)
        back, spare = peer.buffer("horner", 2, *y.shape)
        torch.mul(sets, grad_u[-1], out=back)
        for m in range(len(u) - 2, -1, -1):
            peer.steps.horner(back, sets, grad_u[m], spare)
            back, spare = spare, back
        grad_beta = torch.stack([torch.dot(y[k].view(-1), back[k].view(-1)) for k in range(len(y))])
        grad_y = beta.view(-1, 1, 1, 1) * back if context.needs_input_grad[1] else None
        return None, grad_y, None, grad_alpha, grad_beta


class StatisticsFunction(torch.autograd.Function):
    """Mean and variance over the nodes of abs(T_k(L - I) z): framed (K, H+2, W+2, B) -> (K, K_max+1, 2, B)."""

    @staticmethod
    def forward(context, peer, z):
        n_orders, n_nodes = peer.plan.max_order + 1, peer.plan.graph.n_nodes
        moments = torch.empty(len(z), n_orders, 2, z.shape[3], dtype=z.dtype)
        n_kept = n_orders if context.needs_input_grad[1] else 3  # backward needs them all
        terms = peer.buffer("chebyshev", n_kept, *z.shape)
        for part in peer.parts(len(z)):
            for k in range(n_orders):
                t, current, previous = (terms[number % n_kept, part] for number in (k, k - 1, k - 2))
                if k == 0:
                    t.copy_(z[part])
                elif k == 1:
                    peer.steps.shifted(current, t)
                else:
                    peer.steps.chebyshev(current, previous, t)
                moments[part, k, 0], moments[part, k, 1] = peer.steps.moments(t, n_nodes)
        context.peer, context.terms = peer, terms
        context.save_for_backward(moments)
        return moments

    @staticmethod
    def backward(context, grad):
        (moments,) = context.saved_tensors
        peer, terms = context.peer, context.terms
        n_orders, n_maps = terms.shape[:2]
        slope = grad[:, :, 1] * (2 / peer.plan.graph.n_nodes)
        height = grad[:, :, 0] / peer.plan.graph.n_nodes - slope * moments[:, :, 0]
        slope, height = (x[:, :, None, None].transpose(0, 1).contiguous() for x in (slope, height))
        grad_z = torch.zeros_like(terms[0])
        for part in peer.parts(n_maps):
            zeros, *spare = peer.buffer("clenshaw", 4, *terms[0, part].shape)
            later, after = zeros, zeros
            for k in range(n_orders - 1, -1, -1):  # b_k = dE/dt_k + 2 (L - I) b_{k+1} - b_{k+2}
                out = spare[k % 3] if k else grad_z[part]
                peer.steps.chebyshev(later, after, out, 2 if k else 1)
                peer.steps.add_slopes(terms[k, part], height[k, part], slope[k, part], out)
                later, after = out, later
        return None, grad_z


class ByHandPeer(TorchPeer):
    """No autograd inside the graph layers; steps of `torch_steps.eager`.

    maps_at_once : maps that the statistics take at a time; five (1.6 MB a signal) were fastest here. Micro-batches
        of 25 or 50 images, tried too, were slower.
    """

    name = "PyTorch, gradients by hand"
    fused = True
    make_steps = staticmethod(torch_steps.eager)

    def __init__(self, plan, rate):
        super().__init__(plan, rate)
        self.steps = self.make_steps(stencil(plan, self.dtype))
        self.maps_at_once = 5
        self.buffers = {}

    def buffer(self, name, *shape):
        """An array of zeros the first time, and the same array ever after: its frame stays 0."""
        if (name, shape) not in self.buffers:
            with torch.inference_mode(False):  # inference may come first; a tensor made in it could not be trained with
                self.buffers[name, shape] = torch.zeros(shape, dtype=self.dtype)
        return self.buffers[name, shape]

    def parts(self, n_maps):
        """Slices of maps_at_once maps."""
        return [slice(start, min(start + self.maps_at_once, n_maps)) for start in range(0, n_maps, self.maps_at_once)]

    @torch.no_grad()
    def pool(self, z, omega, n_active):
        """The sets N_k as framed masks; topk of nodes in a row is faster than kthvalue."""
        n_maps, _, _, n_batch = z.shape
        candidates = torch.where(omega, z, -torch.inf)
        n_nodes = self.plan.graph.n_nodes
        if n_active >= n_nodes:
            return omega.expand_as(z)
        columns = inner(candidates).permute(0, 3, 1, 2).reshape(n_maps, n_batch, n_nodes)
        threshold = columns.topk(n_active + 1, dim=2, sorted=False).values.amin(dim=2)
        return candidates > threshold[:, None, None]

    def features(self, images):
        height, width = self.plan.shape
        y = torch.zeros(1, height + 2, width + 2, len(images), dtype=self.dtype)
        inner(y).copy_(images.t().view(1, height, width, -1))
        omega = torch.zeros(y.shape, dtype=torch.bool)
        inner(omega).fill_(True)
        sets = omega
        for (alpha, beta), n_active in zip(self.filters, self.plan.pools, strict=True):
            z = SpectralConvFunction.apply(self, y, sets.to(self.dtype), alpha, beta)
            omega = sets.any(dim=0, keepdim=True)
            sets = self.pool(z, omega, n_active)
            y = z * sets
        return StatisticsFunction.apply(self, y).flatten(0, 2).t()


class CompiledPeer(ByHandPeer):
    """The same with every step compiled to one loop."""

    name = "PyTorch, gradients by hand, compiled"
    checked_in_double = False  # compiling once more takes a minute; the steps in float32 are checked
    may_not_run = True  # without a C++ compiler
    make_steps = staticmethod(torch_steps.compiled)

    def __init__(self, plan, rate):
        super().__init__(plan, rate)
        torch._dynamo.config.recompile_limit = 256  # one for each shape, dtype and number of threads
        self.maps_at_once = 10**9
