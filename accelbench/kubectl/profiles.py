"""`kubectl accelbench profiles [NAME]`: as `accelbench profiles`, with kubectl's options."""

from accelbench.kubectl.options import Context, Kubeconfig
from accelbench.terminal.options import OperatorClass, Output, Printed, ProfileName


def profiles(
    name: ProfileName = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    class_name: OperatorClass = "accelbench",
    output: Printed = Output.TABLE,
) -> None:
    """Show the profiles of a cluster, and what fits them.

    Shows the nodes that fit each profile, and devices that no profile selects.
    """
    from accelbench.terminal.profiles import print_profiles

    print_profiles(name, context, class_name, output, kubeconfig)
