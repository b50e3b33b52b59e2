"""What can go wrong with a test cluster, one type per thing a caller can do something about."""

from __future__ import annotations


class ClusterError(Exception):
    """A test cluster could not do what was asked."""


class ToolMissingError(ClusterError):
    """This machine lacks something that the cluster is made of; the message says what to install."""


class BuildError(ClusterError):
    """Go could not build a binary; the message ends with what it said."""


class DeadlineError(ClusterError):
    """Something awaited did not come in time; the message names it."""


class ComponentError(ClusterError):
    """A component of the cluster ended or never became ready; the message ends with its log."""


class KubectlError(ClusterError):
    """A kubectl command failed; the message holds the command and what it said."""


class ForeignClusterError(ClusterError):
    """The cluster given to the tests looks like somebody's: nothing has been done to it."""
