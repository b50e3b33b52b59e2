"""The process that stays: starts launches in rounds, asks the judge after each, delivers a result. No numpy here."""
