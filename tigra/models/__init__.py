"""THE STORY, 3: networks, built from layers.

notation          parses and formats texts such as "SC[3, 3]-DP[300]-S[10]-FC[50]"
kinds, tigranet   the registry of layer kinds, and TIGraNet's own kinds
build             from the text to a network: `build_network`
network           images in, class scores out; classifier is the common base class
loss              softmax and negative log-likelihood
workers, team     micro-batches on threads and on processes; batch_statistics is for batch normalisation
"""

from tigra.models.build import build_network, count_parameters
from tigra.models.classifier import accuracy
from tigra.models.network import Network
from tigra.models.notation import format_architecture, parse_architecture

__all__ = ["Network", "accuracy", "build_network", "count_parameters", "format_architecture", "parse_architecture"]
