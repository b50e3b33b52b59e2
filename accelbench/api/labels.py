"""Labels and annotations that tie Jobs, pods and results to their run; the operator selects by them."""

MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "accelbench"

RUN = "accelbench.dev/run"
RUN_UID = "accelbench.dev/run-uid"
CASE = "accelbench.dev/case"
ATTEMPT = "accelbench.dev/attempt"
SERIES = "accelbench.dev/series"
CLASS = "accelbench.dev/class"
"""Of the operator that the object belongs to: a release holds nothing of another's."""

PROFILES = "accelbench.dev/profiles"
"""Of the ConfigMap that has an operator's profiles, under the key `profiles.yaml`."""

QUEUE = "kueue.x-k8s.io/queue-name"
"""Kueue's, on a run and on its Jobs: the LocalQueue that these wait in."""
QUEUE_PRIORITY = "kueue.x-k8s.io/priority-class"

CASE_ANNOTATION = "accelbench.dev/case-document"
"""The case document as JSON; a downward API volume puts it before the runner, so no second object can be lost."""

CASE_FILE = "/etc/accelbench/case.json"
"""Where the runner's container finds it."""
