"""PyTorch as most would write it: batch first (B, K, H, W), conv2d or slices, topk, einsum, autograd."""

from __future__ import annotations

import torch
from torch.nn import functional

from benchmarks.peers.torch_base import TorchPeer, stencil


class IdiomaticPeer(TorchPeer):
    """The neighbours are added by a depthwise conv2d."""

    name = "PyTorch, idiomatic, conv2d"

    def __init__(self, plan, rate):
        super().__init__(plan, rate)
        self.stencil = stencil(plan, self.dtype)

    def adjacency(self, x):
        """Weighted sum of the neighbours, zeros outside."""
        n_maps = x.shape[1]
        return functional.conv2d(x, self.stencil.expand(n_maps, 1, 3, 3), padding=1, groups=n_maps)

    def spectral_conv(self, y, active, alpha, beta):
        """z_i = sum_k beta_k 1[N_k] sum_m alpha_im L^m y_k."""
        terms = [y]
        for _ in range(alpha.shape[1] - 1):
            terms.append(terms[-1] - self.adjacency(terms[-1]))
        u = torch.einsum("k,bkmhw->bmhw", beta, torch.stack(terms, dim=2) * active[:, :, None])
        return torch.einsum("im,bmhw->bihw", alpha, u)

    def pool(self, z, active, n_active):
        """The sets N_k: what lies above the (J+1)-th largest value among the nodes of Omega."""
        omega = active.any(dim=1, keepdim=True)
        candidates = torch.where(omega, z.detach(), -torch.inf)
        if n_active >= z[0, 0].numel():
            return omega.expand_as(z)
        threshold = candidates.flatten(2).topk(n_active + 1, dim=2).values[:, :, -1]
        return candidates > threshold[:, :, None, None]

    def statistics(self, z):
        """Mean and variance of abs(T_k(L - I) z), (B, F)."""
        terms = [z, -self.adjacency(z)][: self.plan.max_order + 1]
        for _ in range(2, self.plan.max_order + 1):
            terms.append(-2 * self.adjacency(terms[-1]) - terms[-2])
        sizes = torch.stack(terms, dim=2).abs()
        moments = [sizes.mean(dim=(3, 4)), sizes.var(dim=(3, 4), correction=0)]
        return torch.stack(moments, dim=3).flatten(1)

    def features(self, images):
        y = images.view(len(images), 1, *self.plan.shape)
        active = torch.ones_like(y, dtype=torch.bool)
        for (alpha, beta), n_active in zip(self.filters, self.plan.pools, strict=True):
            z = self.spectral_conv(y, active, alpha, beta)
            active = self.pool(z, active, n_active)
            y = z * active
        return self.statistics(y)


class IdiomaticSlicesPeer(IdiomaticPeer):
    """The neighbours are added as slices of the padded maps."""

    name = "PyTorch, idiomatic, slices"

    def adjacency(self, x):
        height, width = x.shape[2:]
        straight, diagonal = self.plan.stencil_weights
        framed = functional.pad(x, (1, 1, 1, 1))

        def shifted(i, j):
            return framed[:, :, i : i + height, j : j + width]

        return straight * (shifted(0, 1) + shifted(2, 1) + shifted(1, 0) + shifted(1, 2)) + diagonal * (
            shifted(0, 0) + shifted(2, 2) + shifted(0, 2) + shifted(2, 0)
        )
