"""The exact likelihood of the reports: its maximum, its information, and what follows."""
