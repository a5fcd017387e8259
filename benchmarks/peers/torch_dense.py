"""The dense-operator formulation: N x N x K_out operators, one matrix product for each layer (as the authors' port)."""

from __future__ import annotations

import torch

from benchmarks.peers.torch_base import TorchPeer


class DenseOperatorPeer(TorchPeer):
    """Each step builds F_i = sum_m alpha_im L^m as dense matrices; signals are (N, K, B).

    The authors' port mixes the maps first, with one active set for all: its product has one K_in-th of the columns.
    Per-map sets, the function that all peers compute here, leave the mixing after the product.
    """

    name = "PyTorch, dense operators"
    takes_seconds = True

    def __init__(self, plan, rate):
        super().__init__(plan, rate)
        laplacian = torch.tensor(plan.graph.laplacian.toarray(), dtype=self.dtype)
        self.shifted = laplacian - torch.eye(len(laplacian), dtype=self.dtype)
        degree = max(alpha.shape[1] for alpha, _ in plan.filters) - 1
        powers = [torch.eye(len(laplacian), dtype=self.dtype)]
        for _ in range(degree):
            powers.append(laplacian @ powers[-1])
        self.powers = torch.stack(powers)  # (M+1, N, N)

    def spectral_conv(self, y, active, alpha, beta):
        n_nodes, n_maps, n_batch = y.shape
        operator = torch.tensordot(alpha, self.powers[: alpha.shape[1]], dims=1)  # (K_out, N, N)
        filtered = operator.view(-1, n_nodes) @ y.reshape(n_nodes, -1)
        filtered = filtered.view(len(alpha), n_nodes, n_maps, n_batch) * active
        return torch.einsum("k,inkb->nib", beta, filtered)

    def pool(self, z, active, n_active):
        omega = active.any(dim=1, keepdim=True)
        candidates = torch.where(omega, z.detach(), -torch.inf)
        if n_active >= len(z):
            return omega.expand_as(z)
        return candidates > candidates.topk(n_active + 1, dim=0).values[-1]

    def features(self, images):
        y = images.t()[:, None].contiguous()
        active = torch.ones_like(y, dtype=torch.bool)
        for (alpha, beta), n_active in zip(self.filters, self.plan.pools, strict=True):
            z = self.spectral_conv(y, active, alpha, beta)
            active = self.pool(z, active, n_active)
            y = z * active
        n_nodes, n_maps, n_batch = y.shape
        flat = y.reshape(n_nodes, -1)
        terms = [flat, self.shifted @ flat][: self.plan.max_order + 1]
        for _ in range(2, self.plan.max_order + 1):
            terms.append(2 * (self.shifted @ terms[-1]) - terms[-2])
        sizes = torch.stack(terms).abs()
        moments = torch.stack([sizes.mean(dim=1), sizes.var(dim=1, correction=0)])  # (2, K_max+1, K * B)
        return moments.view(2, -1, n_maps, n_batch).permute(3, 2, 1, 0).flatten(1)
