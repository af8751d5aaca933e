"""Short names for the arrays of the engine."""

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]
