"""The same network in other hands.

Every peer is made from a `Plan`, starts from the same parameters and computes the same function:
per-map active sets, vector mixing, padded boundary, statistics over all nodes. All have

    loss_and_gradient(images, labels)   images (B, N), labels (B,) -> float, vector like Network.parameters
    step(images, labels)                forward, loss, backward, Adam
    scores(images)                      (B, N) -> (B, n_classes)
    parameters                          vector like Network.parameters
"""
