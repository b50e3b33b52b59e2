"""Print results, and define the options that `accelbench` and the kubectl plugin share."""
