"""What a report is: kinds of answers, layouts of reports, the contract of mechanisms, tallies."""
