"""Rows like embeddings of text: sums of a topic, a subtopic, a story and noise, scaled to length 1.

There are 40 topics, 600 subtopics and 6,000 stories. The four parts have scales 1, 0.8, 0.6 and 0.6. Each is drawn with
variances that fall as a power of i, by default as 1 / i, and then rotated by its own rotation. With 1 / i, the
intrinsic dimension is 6 to 7, and the tenth neighbour is at a distance of 0.6.
"""

from __future__ import annotations

from typing import Any

LEVELS = ((40, 1.0), (600, 0.8), (6000, 0.6))
NOISE = 0.6


def law(d: int, where: str, generator: Any, *, power: float = 1.0) -> Any:
    """Return a function that takes a count and makes the next rows, (count, d) float32, on the torch device `where`.

    Variances are proportional to i ** -power.
    """
    import torch

    spread = torch.arange(1, d + 1, device=where, dtype=torch.float32) ** (-power / 2)
    spread = spread / torch.linalg.vector_norm(spread)

    def normal(*shape: int) -> Any:
        return torch.empty(shape, device=where).normal_(generator=generator)

    def turned() -> Any:
        return spread[:, None] * torch.linalg.qr(normal(d, d)).Q

    parts = [scale * (normal(count, d) @ turned()) for count, scale in LEVELS]
    noise = NOISE * turned()

    def more(rows: int) -> Any:
        made = normal(rows, d) @ noise
        for part in parts:
            made += part[torch.randint(len(part), (rows,), generator=generator, device=where)]
        return torch.nn.functional.normalize(made)

    return more
