import json

import pytest

from api.bad.bounds import BOUNDS
from api.bad.fields import FIELDS
from api.bad.kinds import KINDS
from api.bad.names import NAMES
from api.bad.pods import PODS
from api.bad.rules import RULES
from api.bad.table import Bad
from api.refusals import from_kubectl, from_us
from api.requests import Runs
from cluster.cluster import Cluster

OF_A_RUN = [*FIELDS, *NAMES, *BOUNDS, *RULES, *PODS]
BAD = [*OF_A_RUN, *KINDS]
BY_KUBECTL = [*FIELDS[:6], *NAMES[:3], *BOUNDS[:3], *RULES[:3], *PODS[:3], *KINDS]
"""What kubectl makes of each kind of refusal; all that are of a run are asked of the API server itself."""


def test_no_row_of_the_table_occurs_twice() -> None:
    assert len({row.what for row in BAD}) == len(BAD)


@pytest.mark.parametrize("row", BY_KUBECTL, ids=lambda row: row.what)
def test_kubectl_apply_refuses_with_the_message_of_the_table(crds: Cluster, row: Bad) -> None:
    # `apply` asks for the object first, and for one without a name it cannot.
    verb = "apply" if "name" in row.manifest["metadata"] else "create"
    done = crds.kubectl(verb, "--filename=-", input=json.dumps(row.manifest), check=False)
    assert done.returncode != 0
    assert from_kubectl(done.stderr) == set(row.refusals)


@pytest.mark.parametrize("row", OF_A_RUN, ids=lambda row: row.what)
def test_the_api_server_refuses_with_the_message_of_the_table(runs: Runs, row: Bad) -> None:
    assert runs.refusals_to_create(row.manifest) == set(row.refusals)


@pytest.mark.parametrize("row", BAD, ids=lambda row: row.what)
def test_validate_refuses_with_the_same_message(row: Bad) -> None:
    assert from_us(json.dumps(row.manifest)) == set(row.refusals)


@pytest.mark.parametrize("row", PODS[:6], ids=lambda row: row.what)
def test_what_would_break_isolation_is_refused_for_a_client_that_is_not_strict_too(server: Cluster, row: Bad) -> None:
    manifest = json.dumps(row.manifest)
    done = server.kubectl("apply", "--validate=false", "--filename=-", input=manifest, check=False)
    assert done.returncode != 0
    assert row.refusals[0] in done.stderr
