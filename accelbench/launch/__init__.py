"""Define what one launch reports: its record and its facts, parsed once where they are read from the pipe."""
