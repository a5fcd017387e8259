"""PyTorch with sparse CSR products in the batch-last layout (nodes, maps * batch), kthvalue, autograd."""

from __future__ import annotations

import warnings

import torch

from benchmarks.peers.torch_base import TorchPeer


class SymmetricProduct(torch.autograd.Function):
    """scale * S x + times * y for a symmetric CSR matrix S, in one pass.

    S is its own adjoint; autograd would turn it round anew in every backward.
    """

    @staticmethod
    def forward(context, matrix, x, y, scale, times):
        context.matrix, context.scale, context.times = matrix, scale, times
        return torch.addmm(y, matrix, x, beta=times, alpha=scale)

    @staticmethod
    def backward(context, grad):
        grad = grad.contiguous()
        to_y = context.times * grad if context.needs_input_grad[2] and context.times else None
        return None, torch.addmm(grad, context.matrix, grad, beta=0, alpha=context.scale), to_y, None, None


class CsrPeer(TorchPeer):
    """Signals are (N, K, B), so that one product serves all maps and images."""

    name = "PyTorch, sparse CSR, batch last"
    fused = True

    def __init__(self, plan, rate):
        super().__init__(plan, rate)
        self.laplacian = csr_tensor(plan.graph.laplacian, self.dtype)
        self.shifted = csr_tensor(plan.graph.shifted_laplacian, self.dtype)

    def spectral_conv(self, y, active, alpha, beta):
        n_nodes, n_maps, n_batch = y.shape
        term, weights = y.view(n_nodes, -1), beta[:, None] * active  # weights (N, K, B)
        u = [(weights * y).sum(dim=1)]
        for _ in range(alpha.shape[1] - 1):
            term = SymmetricProduct.apply(self.laplacian, term, term.detach(), 1.0, 0.0)
            u.append((weights * term.view_as(y)).sum(dim=1))
        return torch.matmul(alpha, torch.stack(u, dim=1))  # (K_out, M+1) times (N, M+1, B)

    def pool(self, z, active, n_active):
        omega = active.any(dim=1, keepdim=True)
        if n_active >= len(z):
            return omega.expand_as(z)
        candidates = z.detach().masked_fill(~omega, -torch.inf)
        columns = candidates.permute(1, 2, 0).contiguous()  # nodes last: far faster for the selection
        return candidates > columns.kthvalue(len(z) - n_active, dim=2).values

    def statistics(self, z):
        n_nodes, n_maps, n_batch = z.shape
        previous, current = None, z.view(n_nodes, -1)
        moments = []
        for k in range(self.plan.max_order + 1):
            if k == 1:
                following = SymmetricProduct.apply(self.shifted, current, current.detach(), 1.0, 0.0)
            elif k > 1:
                following = SymmetricProduct.apply(self.shifted, current, previous, 2.0, -1.0)
            if k:
                previous, current = current, following
            size = current.abs()
            mean = size.mean(dim=0)
            moments += [mean, (size - mean).square().mean(dim=0)]  # torch.var_mean takes ten times as long
        return torch.stack(moments).view(-1, n_maps, n_batch).permute(2, 1, 0).flatten(1)

    def features(self, images):
        y = images.t().contiguous()[:, None]
        active = torch.ones_like(y, dtype=torch.bool)
        for (alpha, beta), n_active in zip(self.filters, self.plan.pools, strict=True):
            z = self.spectral_conv(y, active, alpha, beta)
            active = self.pool(z, active, n_active)
            y = z * active
        return self.statistics(y)


def csr_tensor(matrix, dtype):
    """A SciPy CSR matrix as a tensor."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "in beta state"
        parts = [torch.tensor(part, dtype=torch.int64) for part in (matrix.indptr, matrix.indices)]
        return torch.sparse_csr_tensor(*parts, torch.tensor(matrix.data, dtype=dtype), size=matrix.shape)
