"""Define one exception for each answer of the API server that a caller can handle.

ClusterError               the cluster cannot be used; the message has the reason and advice
    ApiError               an error answer, or no answer
        InvalidError       400, 422
        UnauthorizedError  401
        ForbiddenError     403, and any denial by an admission policy or webhook
        NotFoundError      404
        ConflictError      409
        ExpiredError       410
        TooLargeError      413
        UnreachableError   no answer, or an answer that broke off
"""

import json
import re
from collections.abc import Mapping

from accelbench.document import shorten

TOO_MANY_REQUESTS, SERVER_ERROR = 429, 500
MAXIMUM_MESSAGE_CHARACTERS = 2048
"""Most characters of an error's message."""
DENIAL = re.compile("(admission webhook|AdmissionPolicy) .* denied (the )?request")
"""Words of the API server about a denial by an admission policy or webhook, which chooses the HTTP status itself."""


class ClusterError(Exception):
    """Report that the cluster cannot be used; `message` has the reason and advice."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ApiError(ClusterError):
    """Report an error answer of the API server, or the lack of an answer."""

    def __init__(self, status: int, message: str, retry_after_seconds: float = 0.0) -> None:
        """Report an answer with this HTTP status; 0 if there was no answer.

        `retry_after_seconds` is how long the server asks the client to wait before the next request.
        """
        super().__init__(message)
        self.status = status
        self.retry_after_seconds = retry_after_seconds

    def __str__(self) -> str:
        """Return the message with its HTTP status, for logs."""
        return f"{self.status}: {self.message}"

    @property
    def is_temporary(self) -> bool:
        """Return True if the same request may succeed later."""
        has_no_answer = self.status == 0
        return has_no_answer or self.status == TOO_MANY_REQUESTS or self.status >= SERVER_ERROR


class InvalidError(ApiError):
    """Report 400 or 422: the request itself is wrong, so that repeating it is useless."""


class UnauthorizedError(ApiError):
    """Report 401: the server does not accept the credentials."""


class ForbiddenError(ApiError):
    """Report a refusal by RBAC, a quota, a policy or a webhook, all of which can be changed: 403, or another status."""


class NotFoundError(ApiError):
    """Report 404: the object, its namespace or its kind does not exist."""


class ConflictError(ApiError):
    """Report 409: the object exists already, or is not the version or the object that the request names."""


class ExpiredError(ApiError):
    """Report 410: the resource version is too old to continue from; list again."""


class TooLargeError(ApiError):
    """Report 413: the object is larger than the API server or etcd accepts."""


class UnreachableError(ApiError):
    """Report that no answer arrived within the time limit, or that the answer broke off; the status is 0."""


ERRORS_BY_STATUS: Mapping[int, type[ApiError]] = {
    400: InvalidError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: ExpiredError,
    413: TooLargeError,
    422: InvalidError,
}


def api_error(status: int, body: str, retry_after: str = "") -> ApiError:
    """Return the exception for an answer with an HTTP error status; its message is that of the answer's `body`.

    `retry_after` is the value of the header `Retry-After`, which API servers send in whole seconds.
    """
    try:
        message = str(json.loads(body).get("message") or body)
    except (ValueError, AttributeError):  # the body is not JSON, or not a JSON object
        message = body
    retry_after_seconds = float(retry_after) if retry_after.isdecimal() else 0.0
    # A ValidatingAdmissionPolicy denies with 422 by default, and a webhook with 400, as if the request were invalid.
    error_class = ForbiddenError if DENIAL.search(message) else ERRORS_BY_STATUS.get(status, ApiError)
    return error_class(status, shorten(message.strip(), MAXIMUM_MESSAGE_CHARACTERS), retry_after_seconds)
