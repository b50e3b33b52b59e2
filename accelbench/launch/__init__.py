"""Define the record of one launch and the facts that it reports over its pipe, which are parsed once, when read."""
