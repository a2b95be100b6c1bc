#!/usr/bin/env bash
# safetensors 0.8.0 (numpy 2.2.6): a transposed array is stored with its values in the wrong places.
#
# Array: a factor of a LoRA that is turned for another layout, here lora_B of 3 rows and rank 2.
# Expected: the values of the array, as in 0.7.0, or an error. Observed: save() of safetensors.numpy
# takes the shape of the view and the memory behind it, so that the file is valid, has the right shape
# and holds another matrix. The same for columns that are cut out. numpy.ascontiguousarray() before
# saving helps. The function's description asks for contiguous arrays; upstream has it as issue 825.
#
# Output:
#   safetensors 0.7.0
#     saved [[1, 4], [2, 5], [3, 6]]  read [[1, 4], [2, 5], [3, 6]]  transposed
#     saved [[1, 3], [4, 6]]  read [[1, 3], [4, 6]]  columns
#   safetensors 0.8.0
#     saved [[1, 4], [2, 5], [3, 6]]  read [[1, 2], [3, 4], [5, 6]]  transposed
#     saved [[1, 3], [4, 6]]  read [[1, 2], [3, 4]]  columns
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/env"
pip() { "$dir/env/bin/pip" install --quiet --disable-pip-version-check "$@"; }

cat > "$dir/show.py" <<'PY'
import sys

import numpy as np
import safetensors
from safetensors.numpy import load, save

kept = sys.argv[1] == "kept"
factor = np.array([[1, 2, 3], [4, 5, 6]], dtype=np.int32)
print(f"safetensors {safetensors.__version__}")
views = {"transposed": factor.T, "columns": factor[:, ::2]}
for name, view in views.items():
    read = load(save({"lora_B.weight": view}))["lora_B.weight"]
    print(f"  saved {view.tolist()}  read {read.tolist()}  {name}")
    # Where values move, the file has the first values of the memory behind the view.
    moved = factor.ravel()[: view.size].reshape(view.shape)
    assert np.array_equal(read, view if kept else moved), name
    copy = np.ascontiguousarray(view)
    assert np.array_equal(load(save({"x": copy}))["x"], view), name
PY
pip numpy==2.2.6 safetensors==0.7.0
"$dir/env/bin/python" "$dir/show.py" kept
pip safetensors==0.8.0
"$dir/env/bin/python" "$dir/show.py" moved
