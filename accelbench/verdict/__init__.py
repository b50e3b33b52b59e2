"""From a clean certificate to a verdict, to what may be shown of it, and to what was expected."""
