#!/bin/sh
# `make demo`: installs what it needs into .venv, runs the first example with no cluster, and times both apart.
set -eu

python=${PYTHON:-python3}
"$python" - <<'CHECK' || exit 1
import sys
if sys.version_info < (3, 11):
    sys.exit(f"accelbench needs Python 3.11 or later; this is {sys.version.split()[0]}. Try: make demo PYTHON=python3.12")
try:
    import ensurepip, venv
except ImportError:
    sys.exit("this Python cannot make virtual environments; on Debian: apt-get install python3-venv")
CHECK

seconds() { date +%s; }

start=$(seconds)
MAKEFLAGS='' make --silent .venv/bin/uv PYTHON="$python"
echo "Set-up: installing accelbench with both frameworks into .venv (several GB the first time) ..."
# Bytecode now: else the first launches compile it in their import phase (all, with PYTHONDONTWRITEBYTECODE).
.venv/bin/uv pip install --quiet --python .venv/bin/python --compile-bytecode --constraint constraints.txt --editable '.[jax,torch,report]'
ready=$(seconds)
echo "Set-up took $((ready - start)) s. Running examples/01-matmul-chain.yaml ..."
echo

out=results/demo
number=1
while [ -e "$out" ]; do # nothing is overwritten
    number=$((number + 1))
    out=results/demo-$number
done
status=0
# One processor: where another one is busy, an idle one is left.
.venv/bin/accelbench run examples/01-matmul-chain.yaml --processors 1 --out "$out" || status=$?
finished=$(seconds)

echo
echo "Set-up: $((ready - start)) s. Run: $((finished - ready)) s."
.venv/bin/python - "$out" <<'SENTENCE'
import json
import sys
from pathlib import Path

for path in Path(sys.argv[1]).glob("*.result.json"):
    compared = json.loads(path.read_text())["comparisons"]
    decided = [each for each in compared if each.get("verdict", "inconclusive") != "inconclusive"]
    print((decided or compared)[0]["sentence"].partition(". ")[0].rstrip(".") + ".")
SENTENCE
# 5: invalid. One reason, a machine that is too busy, passes.
[ "$status" -ne 5 ] || echo "Not every comparison has a verdict: see the checks above. Where others used all processors, try again later."
echo "Report: $out/report.html"
echo "Next, with products so large that dispatching hardly counts (5 minutes):"
echo "  .venv/bin/accelbench run examples/01-matmul-chain.yaml --set workload.parameters.size=512 --set measurement.timeLimitSeconds=300"
exit "$status"
