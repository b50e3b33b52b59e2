"""Measure how many wrong outputs the parity rule misses, and how many right ones it refuses, before and now.

    python -m benchmarks.parity [FILE] > docs/results/parity.md

The corpus (`corpus/`) has programs that are each written in NumPy, JAX and PyTorch, and wrong versions of them. Each
runs on inputs of three seeds; nothing is simulated. Errors of stated sizes are also put into the right outputs. All
outputs are judged by the rule of commit 1e6de44 (`before.py`) and by the judge's own functions (`after.py`). The
picture goes to docs/results/parity.svg. FILE keeps what was measured; a second call continues with the rest.
"""

import sys
import time
import warnings
from pathlib import Path

import torch
from threadpoolctl import threadpool_limits

from benchmarks.parity import picture, report
from benchmarks.parity.corpus import PROGRAMS
from benchmarks.parity.measure import Cost, Row, from_record, measure, to_record
from benchmarks.real import RecordFile

SEEDS = (1, 2, 3)


def main(record_file: RecordFile) -> None:
    """Measure, and print the report as Markdown."""
    warnings.simplefilter("ignore")  # of NumPy, about programs that overflow in a narrow type
    torch.set_num_threads(1)
    threadpool_limits(1)  # threads of NumPy's libraries spin, which would count as processor time
    torch.set_flush_denormal(True)  # as launches do
    work = [(program, precision, seed) for seed in SEEDS for program in PROGRAMS for precision in program.precisions]
    for program, precision, seed in work[len(record_file.records) :]:
        began = time.process_time()
        record = to_record(*measure(program, precision, seed))
        record_file.add({**record, "seconds": time.process_time() - began})
    rows: list[Row] = []
    costs: list[Cost] = []
    for record in record_file.records:
        record_rows, cost = from_record(record)
        rows += record_rows
        costs.append(cost)
    picture.write(rows)
    report.write(rows, costs, sum(record["seconds"] for record in record_file.records))


if __name__ == "__main__":
    main(RecordFile(Path(sys.argv[1]) if len(sys.argv) > 1 else None))
