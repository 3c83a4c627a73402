-- Begins a transaction that writes: immediate, so that another process is waited for here and never
-- met half-way.
BEGIN IMMEDIATE;
