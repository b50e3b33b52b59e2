"""Visit a GPU for minutes: measure what readers want most first, and continue at the next visit (`make gpu-visit`).

docs/results/gpu/README.md explains it for people.

| file | holds |
|---|---|
| `items.yaml` | what visits measure, in the order of what readers want most |
| `items.py` | its items, as tasks of the plan |
| `plan.py` | which task is next, and with how many rounds: pure |
| `attempts.py` | the file that a visit appends each attempt to |
| `perform.py` | one attempt: a measurement, a program, or a check |
| `__main__.py` | the visit: it asks the plan, performs, and appends, until the time is over |
| `machine.py` | the machine's environment, made from wheels, with nothing but Python's standard library |
| `wheels.py` | those wheels |
| `publish.py` | the import of a visit's file into `docs/results`, with the page in `page.py` |
"""
