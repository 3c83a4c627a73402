-- Takes back what was written since the mark.
ROLLBACK TO batch;
