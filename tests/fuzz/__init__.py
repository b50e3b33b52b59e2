"""Whatever reads what somebody else wrote is given anything: `PYTHONPATH=tests python -m fuzz --seconds 60`."""
