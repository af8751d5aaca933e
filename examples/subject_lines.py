"""Three subject lines of a newsletter: clicks are 0 or 1, so Beta-Thompson sampling is right, and has nothing to tune.

`python examples/subject_lines.py` sends 50,000 mails to made-up readers, 500 at a time, and says what came of it.
"""

from __future__ import annotations

import numpy as np

import rightarm as ra

RATES = {"Hello again": 0.020, "We saved you a seat": 0.025, "Your spring list": 0.030}  # nobody knows these


def main(mails: int = 50_000, batch: int = 500) -> ra.Bandit:
    """Send batch after batch; the answers of one are known before the next."""
    bandit = ra.Bandit(list(RATES), ra.BetaThompson(), seed=1, floor=0.01)  # the floor keeps every arm worth evaluating
    readers, clicks = np.random.default_rng(2), 0
    for _ in range(mails // batch):
        sent = bandit.ask(batch)
        answers = [(decision, float(readers.random() < RATES[str(decision.arm)])) for decision in sent]
        bandit.tell(answers)
        clicks += int(sum(reward for _, reward in answers))
    print(bandit)
    print(f"{clicks:,} clicks; the same for all would have had about {mails * np.mean(list(RATES.values())):,.0f}")
    return bandit


if __name__ == "__main__":
    main()
