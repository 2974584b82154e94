"""The pages Play, Knowledge, Rulesheets and Network, and what all pages share."""
