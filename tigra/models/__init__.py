"""THE STORY, 3: layers in a row.

notation          "SC[3, 3]-DP[300]-S[10]-FC[50]" as a list of layers
kinds, tigranet   what each name stands for: the registry, and TIGraNet's own
build             from the text to a network: `build_network`
network           images in, class scores out; classifier is what all methods have in common
loss              softmax and negative log-likelihood
workers           micro-batches on threads; batch_statistics where the images of a batch meet
"""

from tigra.models.build import build_network, count_parameters
from tigra.models.classifier import accuracy
from tigra.models.network import Network
from tigra.models.notation import format_architecture, parse_architecture

__all__ = ["Network", "accuracy", "build_network", "count_parameters", "format_architecture", "parse_architecture"]
