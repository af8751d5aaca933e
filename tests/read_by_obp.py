"""Open Bandit Pipeline in an environment of its own: `estimates` installs it once, and this module, run there, prints.

It wants an old NumPy and an old pandas, and PyTorch, gigabytes of which the estimators asked for here use nothing but
the name of a type: an empty stand-in is enough.
"""

import importlib
import json
import operator
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

REQUIREMENTS = [
    "numpy==1.26.4",
    "pandas==2.1.4",
    "scipy==1.11.4",
    "scikit-learn==1.9.1",
    "matplotlib==3.11.2",
    "seaborn==0.13.2",
    "mypy_extensions",
    "pyyaml",
    "tqdm",
]
PARTS = ["", ".nn", ".nn.functional", ".optim", ".utils", ".utils.data"]  # of PyTorch


def install(environment: Path) -> Path:
    """The interpreter of a new environment with Open Bandit Pipeline."""
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *REQUIREMENTS], check=True, capture_output=True, text=True)
    subprocess.run([*pip, "--no-deps", "obp==0.4.1"], check=True, capture_output=True, text=True)
    return python


def estimates(python: Path, feedback: dict[str, Any], law: list[float]) -> dict[str, Any]:
    """What its estimators say of a fixed law, read from plain data; under ``rewards`` what its regression predicts."""
    asked = json.dumps({"feedback": feedback, "law": law})
    command = [str(python), "-W", "ignore", str(Path(__file__).resolve())]
    done = subprocess.run(command, input=asked, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])  # it may talk before
    return found


class Tensor:
    """Stands for PyTorch's classes."""


def main() -> None:
    import numpy as np

    torch = MagicMock(Tensor=Tensor)
    torch.utils.data.Dataset = torch.nn.Module = Tensor
    sys.modules.update({f"torch{part}": operator.attrgetter(f"torch{part}")(MagicMock(torch=torch)) for part in PARTS})
    ope = importlib.import_module("obp.ope")
    asked = json.load(sys.stdin)
    feedback = {
        name: np.array(value) if isinstance(value, list) else value for name, value in asked["feedback"].items()
    }
    estimators = [
        ope.InverseProbabilityWeighting(),
        ope.SelfNormalizedInverseProbabilityWeighting(),
        ope.DoublyRobust(),
    ]
    evaluation = ope.OffPolicyEvaluation(bandit_feedback=feedback, ope_estimators=estimators)
    law = np.tile(np.array(asked["law"])[None, :, None], (int(asked["feedback"]["n_rounds"]), 1, 1))
    linear = importlib.import_module("sklearn.linear_model").LinearRegression()
    model = ope.RegressionModel(
        n_actions=feedback["n_actions"], base_model=linear, action_context=feedback["action_context"]
    )
    columns = {name: feedback[name] for name in ("context", "action", "reward")}
    rewards = model.fit_predict(**columns, n_folds=2, random_state=1)
    found = evaluation.estimate_policy_values(action_dist=law, estimated_rewards_by_reg_model=rewards)
    print(json.dumps(found | {"rewards": rewards[:, :, 0].tolist()}))


if __name__ == "__main__":
    main()
