"""What a respondent's device keeps: the memo of its permanent draws."""
