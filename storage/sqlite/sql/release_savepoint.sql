-- Forgets the mark.
RELEASE batch;
