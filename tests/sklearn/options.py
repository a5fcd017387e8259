"""Options of estimators that train in a moment."""

TINY = {"architecture": "SC[2, 1]-S[2]-FC[8]", "epochs": 2, "margin": 1}
LEARNING = {"architecture": "SC[4, 2]-S[4]-FC[16]", "epochs": 20, "margin": 1, "batch_size": 10}
