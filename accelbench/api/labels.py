"""Name the labels and annotations that tie Jobs, pods and results to their run; the operator selects by them."""

MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "accelbench"

RUN = "accelbench.dev/run"
RUN_UID = "accelbench.dev/run-uid"
CASE = "accelbench.dev/case"
ATTEMPT = "accelbench.dev/attempt"
SERIES = "accelbench.dev/series"
CLASS = "accelbench.dev/class"
"""Class of the operator that owns the object; other operators ignore it."""

PROFILES = "accelbench.dev/profiles"
"""Label of the ConfigMap that has an operator's profiles, under the key `profiles.yaml`."""

QUEUE = "kueue.x-k8s.io/queue-name"
"""Kueue's label on a run and its Jobs: the LocalQueue in which the Jobs wait."""
QUEUE_PRIORITY = "kueue.x-k8s.io/priority-class"
PASSED_ON = (QUEUE, QUEUE_PRIORITY)
"""Labels of a run that its Jobs get."""

CASE_ANNOTATION = "accelbench.dev/case-document"
"""Case document as JSON. A downward API volume shows it to the runner, so no second object is needed."""

CASE_FILE = "/etc/accelbench/case.json"
"""Path of the case document in the runner's container."""
